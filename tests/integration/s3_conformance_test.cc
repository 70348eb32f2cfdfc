// The conformance suite of stores, on every S3 server there is: our strict fake over http and
// https, and the real ones that tools/with-servers starts.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "integration/fake_s3_store.h"
#include "integration/s3_test_store.h"
#include "integration/servers.h"
#include "store/conformance.h"

namespace objectcache::integration {
namespace {

// ---------------------------------------------------------------- the fake

const fake_s3::TlsFiles& tls_files() {
  static const fake_s3::TlsFiles files = [] {
    const auto folder =
        std::filesystem::temp_directory_path() / ("objectcache-s3-" + std::to_string(::getpid()));
    auto made = fake_s3::make_tls_files(folder);
    if (!made) std::abort();
    return *made;
  }();
  return files;
}

std::unique_ptr<store::StoreUnderTest> fake_store(bool tls) {
  fake_s3::FakeS3Options options;
  if (tls) options.tls = tls_files();
  auto out = std::make_unique<FakeServerAndStore>(options);
  out->client().learn();
  return out;
}

const bool kFake =
    store::register_conformance("S3Conformance/fake", [] { return fake_store(false); });
const bool kFakeTls =
    store::register_conformance("S3Conformance/fake_tls", [] { return fake_store(true); });

// ---------------------------------------------------------------- real servers

/// What a server does not do as S3 does. Each was seen, none is assumed; s3_servers_test.cc shows
/// that none of it touches names as the product makes them.
std::set<std::string> deviations_of(const std::string& product) {
  // An ETag is the MD5 of the bytes: equal bytes are one version to S3, which does no harm.
  std::set<std::string> out = {"equal_bytes_published_again_have_a_new_version"};
  if (product == "seaweedfs") {
    // Keys are files in folders: no object beside a folder of its name...
    out.insert({"object_and_folder_of_one_name", "keys_come_in_byte_order"});
    // ...start-after with a folder's name skips the folder; emptied folders are still shown...
    out.insert({"start_after_is_exclusive", "emptied_folders_are_not_shown"});
    // ...and a component has at most 255 bytes.
    out.insert("longest_components");
  }
  if (product == "rclone") {
    out.insert({"object_and_folder_of_one_name", "keys_come_in_byte_order", "longest_components"});
  }
  return out;
}

bool register_server(const std::string& name) {
  store::ConformanceOptions options;
  options.deviations = deviations_of(name.substr(0, name.find('_')));
  return store::register_conformance(
      "S3Conformance/" + name,
      [name]() -> std::unique_ptr<store::StoreUnderTest> {
        const auto server = find_server(name);
        if (!server) {
          report_missing(name);
          return nullptr;
        }
        auto store = std::make_unique<S3TestStore>(with_prefix(server->url, "conformance"),
                                                   environment_with(access_key(), secret_key()));
        store->learn();
        return store;
      },
      options);
}

const bool kServers = [] {
  for (const std::string& name : all_server_names()) register_server(name);
  return true;
}();

}  // namespace
}  // namespace objectcache::integration
