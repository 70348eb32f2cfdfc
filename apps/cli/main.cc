// objectcache, the command line: parses options, wires them to commands, turns results into exit
// codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "cli/admin_commands.h"
#include "cli/commands.h"
#include "cli/demo.h"
#include "cli/doctor.h"

extern char** environ;  // NOLINT: POSIX's name

namespace objectcache::cli {
namespace {

/// The only place where the environment is read.
Environment read_environment() {
  Environment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const std::size_t at = text.find('='); at != std::string_view::npos) {
      out.variables.emplace(text.substr(0, at), text.substr(at + 1));
    }
  }
  if (const auto home = out.variables.find("HOME"); home != out.variables.end()) {
    out.home_directory = home->second;
  }
  return out;
}

/// What the parser fills in, and the command to run then.
struct Parsed {
  Console::Options console;
  std::uint64_t deadline_ms = 60'000;
  StoreOptions store;
  PrefixOptions prefix;
  PutOptions put;
  GetOptions get;
  MatchOptions match;
  ListOptions list;
  StatOptions stat;
  VerifyCommandOptions verify;
  RemoveOptions remove;
  DemoOptions demo;
  DoctorOptions doctor;
  std::function<ExitCode(Console&)> run;
};

void add_store_options(CLI::App& command, Parsed& parsed) {
  command
      .add_option("URL", parsed.store.url, "The store: memory:, file:/dir, s3://bucket/prefix?...")
      ->required();
  command.add_option("--tenant", parsed.store.tenant, "Whose entries")->capture_default_str();
  command
      .add_option("--deadline-ms", parsed.deadline_ms,
                  "Longest wait for the store, in milliseconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 86'400'000));
}

void add_prefix_options(CLI::App& command, Parsed& parsed) {
  PrefixOptions& prefix = parsed.prefix;
  command.add_option("--namespace", prefix.namespace_file, "Namespace file (JSON)")->required();
  command.add_option("--tokens", prefix.tokens_file, "Token ids: JSON array or plain numbers")
      ->required();
  command.add_option("--salt", prefix.cache_salt, "Cache salt of the request");
  command.add_option("--shard", prefix.shard, "Which shard")->capture_default_str();
}

CLI::App* add_command(CLI::App& app, Parsed& parsed, const char* name, const char* help) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_flag("--json", parsed.console.json, "One JSON document on standard output");
  command->add_flag("--quiet", parsed.console.quiet, "No progress bar");
  return command;
}

void add_prefix_commands(CLI::App& app, Parsed& parsed) {
  CLI::App* put = add_command(app, parsed, "put", "Store the KV of a prompt prefix");
  add_store_options(*put, parsed);
  add_prefix_options(*put, parsed);
  put->add_option("--kv", parsed.put.kv_file, "safetensors file, one tensor a layer")->required();
  put->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.put.store = parsed.store;
      parsed.put.prefix = parsed.prefix;
      return run_put(parsed.put, console);
    };
  });

  CLI::App* get = add_command(app, parsed, "get", "Read the longest stored prefix back");
  add_store_options(*get, parsed);
  add_prefix_options(*get, parsed);
  get->add_option("--out", parsed.get.out_file, "safetensors file to write")->required();
  get->add_option("--mode", parsed.get.mode,
                  "planned, chunkwise, layerwise, published or whole-objects")
      ->capture_default_str();
  get->add_option("--connections", parsed.get.connections, "Range reads in flight; 0: default");
  get->add_flag("--require-all", parsed.get.require_all, "A shorter match is a miss (exit 3)");
  get->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.get.store = parsed.store;
      parsed.get.prefix = parsed.prefix;
      return run_get(parsed.get, console);
    };
  });

  CLI::App* match = add_command(app, parsed, "match", "Count the leading chunks that are stored");
  add_store_options(*match, parsed);
  add_prefix_options(*match, parsed);
  match->add_flag("--prove", parsed.match.prove, "Fetch and check the headers, too");
  match->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.match.store = parsed.store;
      parsed.match.prefix = parsed.prefix;
      return run_match(parsed.match, console);
    };
  });
}

void add_admin_commands(CLI::App& app, Parsed& parsed) {
  const auto hex = CLI::Validator(
      [](const std::string& text) {
        const bool good =
            text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
        return good ? std::string()
                    : "a namespace's name is 32 hexadecimal digits, as 'ls' shows it";
      },
      "HEX32");
  CLI::App* list = add_command(app, parsed, "ls", "List namespaces, or the chunks of one");
  add_store_options(*list, parsed);
  list->add_option("NAME", parsed.list.namespace_hex, "A namespace, as 'ls' shows it")->check(hex);
  list->add_flag("--all-tenants", parsed.list.all_tenants, "Namespaces of every tenant");
  list->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.list.store = parsed.store;
      return run_list(parsed.list, console);
    };
  });

  CLI::App* stat =
      add_command(app, parsed, "stat", "Chunks, objects and bytes by namespace and shard");
  add_store_options(*stat, parsed);
  stat->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.stat.store = parsed.store;
      return run_stat(parsed.stat, console);
    };
  });

  CLI::App* verify = add_command(app, parsed, "verify", "Read every object and name each bad one");
  add_store_options(*verify, parsed);
  verify->add_option("NAME", parsed.verify.namespace_hex, "One namespace; all without")->check(hex);
  verify->add_option("--parallel", parsed.verify.parallel, "Chunks read at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  verify->add_flag("--repair", parsed.verify.repair, "Remove what is bad");
  verify->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.verify.store = parsed.store;
      return run_verify(parsed.verify, console);
    };
  });

  CLI::App* remove = add_command(app, parsed, "rm", "Remove a namespace, a tenant or a prompt");
  add_store_options(*remove, parsed);
  remove->add_option("--name", parsed.remove.namespace_hex, "A namespace, as 'ls' shows it")
      ->check(hex);
  remove->add_flag("--whole-tenant", parsed.remove.whole_tenant, "Everything of the tenant");
  CLI::Option* tokens = remove->add_option("--tokens", parsed.remove.prefix.tokens_file,
                                           "The chunks of this prompt (with --namespace)");
  tokens->needs(remove->add_option("--namespace", parsed.remove.prefix.namespace_file,
                                   "Namespace file (JSON)"));
  remove->add_option("--salt", parsed.remove.prefix.cache_salt, "Cache salt of the prompt");
  remove->add_option("--from-chunk", parsed.remove.first_chunk, "Keep the chunks before this one");
  remove->add_flag("--dry-run", parsed.remove.dry_run, "Only count");
  remove->add_flag("--yes", parsed.remove.yes, "Really remove");
  remove->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.remove.store = parsed.store;
      return run_remove(parsed.remove, console);
    };
  });
}

void add_doctor_command(CLI::App& app, Parsed& parsed) {
  CLI::App* doctor = add_command(app, parsed, "doctor", "Check a store and say what to mend");
  add_store_options(*doctor, parsed);
  doctor->add_option("--megabytes", parsed.doctor.megabytes, "What the bandwidth check moves")
      ->capture_default_str()
      ->check(CLI::Range(8, 4096));
  doctor->callback([&parsed] {
    parsed.run = [&parsed](Console& console) {
      parsed.doctor.store = parsed.store;
      return run_doctor(parsed.doctor, console);
    };
  });
}

void add_demo_command(CLI::App& app, Parsed& parsed) {
  CLI::App* demo = add_command(app, parsed, "demo",
                               "Show a prefix written and read back, whole and layer by layer");
  demo->add_option("--scale", parsed.demo.scale, "Divides bytes and link, not times")
      ->capture_default_str()
      ->check(CLI::Range(8, 224));
  demo->callback([&parsed] {
    parsed.run = [&parsed](Console& console) { return run_demo(parsed.demo, console); };
  });
}

int run(int argc, char** argv) {
  CLI::App app("Keeps the KV cache of LLM prompt prefixes in object storage.", "objectcache");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of every command");
  Parsed parsed;
  parsed.store.environment = read_environment();
  add_prefix_commands(app, parsed);
  add_admin_commands(app, parsed);
  add_doctor_command(app, parsed);
  add_demo_command(app, parsed);
  add_command(app, parsed, "version", "Print the version")->callback([&parsed] {
    parsed.run = run_version;
  });
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, is_named)) {
    fmt::print(stderr, "objectcache: unknown command '{}'; --help lists them\n", argv[1]);
    return static_cast<int>(ExitCode::kUsage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  parsed.store.deadline = std::chrono::milliseconds(parsed.deadline_ms);
  Console console(parsed.console);
  return static_cast<int>(parsed.run(console));
}

}  // namespace
}  // namespace objectcache::cli

int main(int argc, char** argv) { return objectcache::cli::run(argc, argv); }
