/// The tests' S3 server as a program: prints S3_ENDPOINT=... and the keys, then serves until it
/// gets SIGINT or SIGTERM.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "fake_s3/fake_s3.h"

namespace {

using objectcache::fake_s3::FakeS3;
using objectcache::fake_s3::FakeS3Options;

int complain(const objectcache::Error& error) {
  fmt::print(stderr, "fake_s3_server: {}\n", error.to_string());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  FakeS3Options options;
  options.records_max = 0;
  double latency_ms = 0;
  std::string access_key = options.credentials[0].access_key_id;
  std::string secret_key = options.credentials[0].secret_access_key.reveal();
  std::string tls_folder;
  std::string faults_file;
  bool md5_etags = false;
  bool lenient = false;

  CLI::App app("A strict S3 server in memory, for tests, that misbehaves on demand");
  app.add_option("--address", options.address, "IPv4 address to listen on");
  app.add_option("--port", options.port, "0: any free port");
  app.add_option("--bucket", options.buckets, "buckets that exist");
  app.add_option("--region", options.region);
  app.add_option("--base-path", options.base_path);
  app.add_option("--latency-ms", latency_ms, "from a request's end to the answer's start");
  app.add_option("--tls-dir", tls_folder, "speak TLS; ca.pem and the rest are made there");
  app.add_option("--access-key", access_key);
  app.add_option("--secret-key", secret_key);
  app.add_option("--seed", options.fault_seed, "of faults with a probability");
  app.add_option("--faults-json", faults_file, "file with a list of faults");
  app.add_flag("--md5-etags", md5_etags, "ETags are MD5 instead of unique");
  app.add_flag("--lenient", lenient, "accept unknown headers: for clients of other makes");
  CLI11_PARSE(app, argc, argv);

  options.latency = std::chrono::microseconds(static_cast<long>(latency_ms * 1000));
  options.credentials[0].access_key_id = access_key;
  options.credentials[0].secret_access_key = objectcache::s3::Secret(secret_key);
  if (md5_etags) options.etags = objectcache::fake_s3::EtagMode::kMd5;
  options.refuse_unknown_headers = !lenient;
  if (!tls_folder.empty()) {
    auto files = objectcache::fake_s3::make_tls_files(tls_folder);
    if (!files) return complain(files.error());
    options.tls = *files;
  }
  std::vector<objectcache::fake_s3::Fault> faults;
  if (!faults_file.empty()) {
    std::ifstream file(faults_file);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto parsed = objectcache::fake_s3::parse_faults(text);
    if (!parsed) return complain(parsed.error());
    faults = std::move(*parsed);
  }

  // Blocked before any thread starts, so that only sigwait() sees them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  auto server = FakeS3::start(options);
  if (!server) return complain(server.error());
  for (auto& fault : faults) (*server)->faults().add(std::move(fault));
  fmt::print("S3_ENDPOINT={}\nS3_ACCESS_KEY={}\nS3_SECRET_KEY={}\nS3_BUCKET={}\nS3_REGION={}\n",
             (*server)->endpoint(), access_key, secret_key, options.buckets.at(0), options.region);
  if (!tls_folder.empty()) fmt::print("S3_CA={}\n", options.tls->ca_certificate.string());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&ends, &signal);
  (*server)->stop();
  fmt::print(stderr, "{} requests on {} connections, {} faults\n", (*server)->requests_total(),
             (*server)->connections_accepted(), (*server)->faults().injected());
  return 0;
}
