#pragma once

#include <functional>
#include <memory>

#include "cli/console.h"
#include "objectcache/cache.h"

namespace CLI {
class App;
}

namespace objectcache::cli {

/// Adds the command `bench` with one subcommand a bench. When one of them is parsed, `console` is
/// filled in and `run` is set to what has to be run. Everything referred to must live as long as
/// `app`.
void register_benches(CLI::App& app, const Environment& environment, Console::Options& console,
                      std::function<ExitCode(Console&)>& run);

}  // namespace objectcache::cli
