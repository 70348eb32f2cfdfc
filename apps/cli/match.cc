#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/prefix.h"

namespace objectcache::cli {

ExitCode run_match(const MatchOptions& options, Console& console) {
  auto prefix = open_prefix(options.store, options.prefix);
  if (!prefix) return console.error(prefix.error());
  const TimePoint deadline = deadline_after(options.store.deadline);
  const auto started = std::chrono::steady_clock::now();
  auto match = prefix->space->match(prefix->chunks, deadline);
  if (!match) return console.error(match.error());
  std::uint32_t chunks = match->chunks;
  if (options.prove && chunks > 0) {
    auto proof = prefix->space->prove(std::span(prefix->chunks).first(chunks), deadline);
    if (!proof) return console.error(proof.error());
    chunks = proof->chunks;
  }
  const auto elapsed = std::chrono::steady_clock::now() - started;
  const std::uint64_t tokens = std::uint64_t{chunks} * prefix->spec().chunk_tokens;
  console.line(fmt::format("{} of {} chunks {}: {} of {} tokens; {} requests in {} rounds, {}",
                           chunks, prefix->chunks.size(), options.prove ? "proven" : "matched",
                           tokens, prefix->tokens.size(), match->probes, match->rounds,
                           human_duration(elapsed)));
  console.document({{"chunks", chunks},
                    {"chunks_wanted", prefix->chunks.size()},
                    {"tokens", tokens},
                    {"proven", options.prove},
                    {"probes", match->probes},
                    {"rounds", match->rounds},
                    {"ms", std::chrono::duration<double, std::milli>(elapsed).count()}});
  return chunks == 0 ? ExitCode::kMiss : ExitCode::kOk;
}

}  // namespace objectcache::cli
