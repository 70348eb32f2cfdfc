// Baseline of the store-read bench: a bare loop over libcurl's multi interface. It signs nothing
// (the workload brings the headers), checks nothing, and copies each body to its buffer.
//
//   curl_read WORKLOAD
#include <curl/curl.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/bench/read_workload.h"

namespace {

using objectcache::cli::ReadWorkload;

struct Slot {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::vector<char> buffer;
  std::size_t filled = 0;
};

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* to) {
  auto& slot = *static_cast<Slot*>(to);
  const std::size_t bytes = size * count;
  if (slot.filled + bytes > slot.buffer.size()) return 0;
  std::memcpy(slot.buffer.data() + slot.filled, data, bytes);
  slot.filled += bytes;
  return bytes;
}

class CurlReader {
 public:
  explicit CurlReader(const ReadWorkload& work) : work_(work), multi_(curl_multi_init()) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(work.connections));
    slots_.resize(work.connections);
    for (Slot& slot : slots_) {
      slot.easy = curl_easy_init();
      slot.buffer.resize(work.length);
      curl_easy_setopt(slot.easy, CURLOPT_WRITEFUNCTION, take_body);
      curl_easy_setopt(slot.easy, CURLOPT_WRITEDATA, &slot);
      curl_easy_setopt(slot.easy, CURLOPT_PRIVATE, &slot);
      curl_easy_setopt(slot.easy, CURLOPT_BUFFERSIZE, 512L * 1024);
      curl_easy_setopt(slot.easy, CURLOPT_TCP_NODELAY, 1L);
      curl_easy_setopt(slot.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
      if (!work.ca_file.empty()) {
        curl_easy_setopt(slot.easy, CURLOPT_CAINFO, work.ca_file.c_str());
      }
    }
    base_url_ = (work.tls ? "https://" : "http://") + work.host + ":" + std::to_string(work.port);
  }
  ~CurlReader() {
    for (Slot& slot : slots_) {
      curl_easy_cleanup(slot.easy);
      curl_slist_free_all(slot.headers);
    }
    curl_multi_cleanup(multi_);
  }
  CurlReader(const CurlReader&) = delete;
  CurlReader& operator=(const CurlReader&) = delete;

  /// Reads ranges [first, last); false and a word on stderr if one fails.
  bool read(std::size_t first, std::size_t last) {
    next_ = first;
    last_ = last;
    std::size_t running = 0;
    for (Slot& slot : slots_) running += begin(slot) ? 1U : 0U;
    while (running > 0) {
      int active = 0;
      curl_multi_perform(multi_, &active);
      int left = 0;
      bool finished = false;
      while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        Slot* slot = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
        if (!good(*slot, message->data.result)) return false;
        curl_multi_remove_handle(multi_, slot->easy);
        if (!begin(*slot)) --running;
        finished = true;
      }
      if (running > 0 && !finished) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    return true;
  }

 private:
  bool begin(Slot& slot) {
    if (next_ == last_) return false;
    const ReadWorkload::Range& range = work_.ranges[next_++];
    const ReadWorkload::Object& object = work_.objects[range.object];
    curl_slist_free_all(slot.headers);
    slot.headers = nullptr;
    const auto header = [&](const std::string& text) {
      slot.headers = curl_slist_append(slot.headers, text.c_str());
    };
    header("x-amz-date: " + object.amz_date);
    header("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    header("Authorization: " + object.authorization);
    const std::string span =
        std::to_string(range.offset) + "-" + std::to_string(range.offset + work_.length - 1);
    curl_easy_setopt(slot.easy, CURLOPT_HTTPHEADER, slot.headers);
    curl_easy_setopt(slot.easy, CURLOPT_RANGE, span.c_str());
    curl_easy_setopt(slot.easy, CURLOPT_URL, (base_url_ + object.path).c_str());
    slot.filled = 0;
    curl_multi_add_handle(multi_, slot.easy);
    return true;
  }

  bool good(const Slot& slot, CURLcode code) const {
    long status = 0;
    curl_easy_getinfo(slot.easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status == 206 && slot.filled == work_.length) return true;
    std::fprintf(stderr, "curl_read: %s, status %ld, %zu bytes\n", curl_easy_strerror(code), status,
                 slot.filled);
    return false;
  }

  const ReadWorkload& work_;
  CURLM* multi_;
  std::vector<Slot> slots_;
  std::string base_url_;
  std::size_t next_ = 0;
  std::size_t last_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto work = objectcache::cli::read_workload_file(argv[1]);
  if (!work) {
    std::fprintf(stderr, "curl_read: %s\n", work.error().to_string().c_str());
    return 2;
  }
  curl_global_init(CURL_GLOBAL_ALL);
  CurlReader reader(*work);
  if (!reader.read(0, work->warm_up)) return 1;
  const objectcache::cli::ClientMeter meter;
  if (!reader.read(work->warm_up, work->ranges.size())) return 1;
  const auto result = meter.read(work->measured_bytes());
  std::fputs(objectcache::cli::format_client_result(result).c_str(), stdout);
  return 0;
}
