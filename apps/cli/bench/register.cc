#include "cli/bench/register.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/bench/benches.h"
#include "cli/bench/layers.h"

namespace objectcache::cli {
namespace {

/// Makes a subcommand whose options live in a shared Options, and tells `run` about it.
class Registrar {
 public:
  Registrar(CLI::App& bench, const Environment& environment, Console::Options& console,
            std::function<ExitCode(Console&)>& run)
      : bench_(bench), environment_(environment), console_(console), run_(run) {}

  template <class Options>
  CLI::App* add(const char* name, const char* help, ExitCode (*function)(const Options&, Console&),
                const std::function<void(CLI::App&, Options&)>& declare) {
    CLI::App* command = bench_.add_subcommand(name, help);
    auto options = std::make_shared<Options>();
    command->add_flag("--json", console_.json, "One JSON document on standard output");
    command->add_flag("--quiet", console_.quiet, "No progress bar");
    declare(*command, *options);
    command->callback([this_run = &run_, environment = &environment_, options, function] {
      options->common.environment = *environment;
      *this_run = [options, function](Console& console) { return function(*options, console); };
    });
    return command;
  }

 private:
  CLI::App& bench_;
  const Environment& environment_;
  Console::Options& console_;
  std::function<ExitCode(Console&)>& run_;
};

void add_small(CLI::App& command, BenchOptions& common) {
  command.add_flag("--small", common.small, "A run of some hundred milliseconds, for tests");
}

void add_store_read(Registrar& to) {
  to.add<StoreReadOptions>(
      "store-read", "Range reads from S3: ours beside other clients", run_bench_store_read,
      [](CLI::App& command, StoreReadOptions& o) {
        add_small(command, o.common);
        command.add_option("--url", o.url, "s3:// store over http; without, a server is started");
        command.add_option("--url-tls", o.url_tls, "s3:// store over https");
        command.add_option("--connections", o.connections, "Reads at once, e.g. 1,4,16")
            ->delimiter(',')
            ->check(CLI::Range(1, 256));
        command.add_option("--range-kib", o.range_kib, "Bytes of a range, e.g. 256,1024")
            ->delimiter(',')
            ->check(CLI::Range(4, 16384));
        command
            .add_option("--clients", o.clients,
                        "Which: objectcache, socket, libcurl, obstore, awscrt; all without it")
            ->delimiter(',')
            ->check(CLI::IsMember({"objectcache", "socket", "libcurl", "obstore", "awscrt"}));
        command.add_option("--runs", o.runs, "Of each client, in turn")
            ->capture_default_str()
            ->check(CLI::Range(1, 1000));
        command.add_option("--run-mib", o.run_mib, "MiB that one run reads")
            ->capture_default_str()
            ->check(CLI::Range(1, 65536));
        command.add_option("--objects", o.objects, "Objects of 16 MiB")
            ->capture_default_str()
            ->check(CLI::Range(1, 1024));
        command.add_option("--python", o.python, "Interpreter with obstore and awscrt");
        command.add_option("--baselines", o.baselines, "Folder of the Python clients");
      });
  to.add<StoreReadClientOptions>(
        "store-read-client", "", run_store_read_client,
        [](CLI::App& command, StoreReadClientOptions& o) {
          command.add_option("WORKLOAD", o.workload, "What to read")->required();
          command.add_flag("!--no-check", o.check, "Do not compare checksums");
          command.add_option("--parameters", o.parameters, "Added to the URL, e.g. '&hedge=off'");
        })
      ->group("");
}

void add_layers(Registrar& to) {
  to.add<LayersOptions>(
      "layers", "The published rows: what each way of reading adds to the time to first token",
      run_bench_layers, [](CLI::App& command, LayersOptions& o) {
        command.add_flag("--small", o.common.small, "One tiny row, for tests");
        command.add_option("--url", o.url, "Store behind a link that is capped from outside");
        command.add_flag("--modelled-link", o.modelled_link, "The modelled link before --url, too");
        command.add_option("--rows", o.rows, "Which rows; all without it")->delimiter(',');
        command.add_option("--modes", o.modes, "whole-prefix, layerwise, whole-objects, planned")
            ->delimiter(',');
        command.add_option("--layouts", o.layouts, "chunk, layer")->delimiter(',');
        command.add_option("--scalings", o.scalings, "chunks, slices")->delimiter(',');
        command.add_option("--stores", o.stores, "memory, file")->delimiter(',');
        command.add_option("--scale", o.scale, "Bytes and link are divided by it")
            ->capture_default_str()
            ->check(CLI::Range(1, 4096));
        command.add_option("--runs", o.runs, "Of each mode, in turn")
            ->capture_default_str()
            ->check(CLI::Range(1, 1000));
        command.add_option("--connections", o.connections, "Range reads at once; 0: by the row");
        command.add_option("--first-byte-ms", o.first_byte_ms, "Of the modelled link")
            ->capture_default_str()
            ->check(CLI::Range(0.0, 1000.0));
      });
}

void add_match_direct(Registrar& to) {
  to.add<MatchDirectOptions>(
      "match-direct", "Finding and proving a stored prefix a millisecond away",
      run_bench_match_direct, [](CLI::App& command, MatchDirectOptions& o) {
        add_small(command, o.common);
        command.add_option("--url", o.url, "Store; without, a slow server is started");
        command.add_option("--url-rgw", o.url_rgw, "A second store, reported beside it");
        command.add_option("--latency-ms", o.latency_ms, "Of the server that is started")
            ->capture_default_str()
            ->check(CLI::Range(0.0, 1000.0));
        command.add_option("--chunks", o.chunks, "Of the prefix to match")
            ->capture_default_str()
            ->check(CLI::Range(2, 65536));
        command.add_option("--prove-chunks", o.prove_chunks, "Of the prefix to prove")
            ->capture_default_str()
            ->check(CLI::Range(1, 65536));
        command.add_option("--runs", o.runs, "Of each case")
            ->capture_default_str()
            ->check(CLI::Range(1, 1000));
      });
}

void add_memory(Registrar& to) {
  to.add<MemoryOptions>("memory", "Memory that a large read adds beside its destination",
                        run_bench_memory, [](CLI::App& command, MemoryOptions& o) {
                          add_small(command, o.common);
                          command.add_option("--url", o.url, "Store; without, a server is started");
                          command.add_option("--mib", o.mib, "MiB to read")
                              ->capture_default_str()
                              ->check(CLI::Range(32, 1 << 20));
                          command.add_option("--connections", o.connections, "Range reads at once")
                              ->capture_default_str()
                              ->check(CLI::Range(1, 64));
                        });
}

void add_cpu(Registrar& to) {
  to.add<CpuOptions>("cpu", "Instructions a byte, CPU seconds a GB of the read path", run_bench_cpu,
                     [](CLI::App& command, CpuOptions& o) {
                       add_small(command, o.common);
                       command.add_option("--url", o.url, "s3:// store over http");
                       command.add_option("--url-tls", o.url_tls, "s3:// store over https");
                       command.add_option("--mib", o.mib, "MiB between the two runs")
                           ->capture_default_str()
                           ->check(CLI::Range(32, 65536));
                     });
  to.add<StreamReadClientOptions>(
        "stream-read-client", "", run_stream_read_client,
        [](CLI::App& command, StreamReadClientOptions& o) {
          command.add_option("URL", o.url)->required();
          command.add_option("--chunks", o.chunks)->check(CLI::Range(1, 65536));
          command.add_option("--repeat", o.repeat)->check(CLI::Range(1, 65536));
          command.add_option("--connections", o.connections)->check(CLI::Range(1, 64));
        })
      ->group("");
}

}  // namespace

void register_benches(CLI::App& app, const Environment& environment, Console::Options& console,
                      std::function<ExitCode(Console&)>& run) {
  CLI::App* bench = app.add_subcommand("bench", "Measure, with baselines in the same run");
  bench->require_subcommand(1);
  Registrar to(*bench, environment, console, run);
  add_store_read(to);
  add_layers(to);
  add_match_direct(to);
  add_memory(to);
  add_cpu(to);
}

}  // namespace objectcache::cli
