// Random sequences of operations against random faults, from one seed each. Checks what must hold
// whatever happens: delivered bytes are those of one version, completions come once and in time,
// nothing is written after them, no two requests share destination bytes.
//
// The faults: refused, reset (before the head, in the middle, after the server acted), hanging
// (before the head, in the middle), slow first bytes, 500, 503 with and without Retry-After, 429,
// short, over-long and contradictory answers, ranges ignored, objects replaced and deleted between
// any two requests, cancelled at any moment, requests that keep their memory long after a cancel.

#include <gtest/gtest.h>

#include "store/s3/testing/fake_s3_world.h"

namespace objectcache::store_s3 {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GetOutcome;
using Kind = FakeTreatment::Kind;

/// Every byte says which version of which object it belongs to, and where.
std::string content(std::uint64_t version, std::size_t size) {
  std::string out(size, 0);
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<char>((i * 131 + (i >> 8) * 17 + version * 71) & 0x7f);
  }
  return out;
}

FakeTreatment random_treatment(Random& random, double faults) {
  FakeTreatment out;
  out.first_byte = microseconds(random.below(2000));
  out.chunk_bytes = 1 + random.below(8000);
  out.chunk_time = microseconds(random.below(200));
  if (random.chance(0.02)) out.first_byte = milliseconds(random.below(800));
  if (!random.chance(faults)) return out;
  const auto somewhere = [&] { return random.below(20'000); };
  switch (random.below(14)) {
    case 0:
      out.kind = Kind::kRefuse;
      break;
    case 1:
      out.kind = Kind::kReset;
      break;
    case 2:
    case 3:
      out.kind = Kind::kReset;
      out.body_bytes = somewhere();
      break;
    case 4:
      out.kind = Kind::kHang;
      break;
    case 5:
      out.kind = Kind::kHang;
      out.body_bytes = somewhere();
      break;
    case 6:
      return canned(500, "InternalError");
    case 7:
      return canned(503, "SlowDown", {{"Retry-After", "1"}});
    case 8:
      return canned(random.chance(0.5) ? 503 : 429, random.chance(0.5) ? "SlowDown" : "");
    case 9:
      out.tamper = [](http::ResponseHead&, std::string& body) { body.resize(body.size() / 2); };
      break;
    case 10:
      out.tamper = [](http::ResponseHead&, std::string& body) { body += "more"; };
      break;
    case 11:
      out.tamper = [](http::ResponseHead& head, std::string& body) {
        body.resize(body.size() / 2);
        head.content_length = body.size();
      };
      break;
    case 12:
      out.tamper = [](http::ResponseHead& head, std::string&) {
        std::erase_if(head.headers, [](const auto& h) { return h.name == "Content-Range"; });
      };
      break;
    default:
      out.kind = Kind::kDoneNoAnswer;
      break;
  }
  return out;
}

struct Read {
  std::string key;
  std::uint64_t offset = 0;
  std::string memory;  ///< With eight guard bytes at each end.
  std::uint64_t length = 0;
  TimePoint deadline;
  std::uint64_t delivered = 0;
  std::string version;
  std::string snapshot;  ///< What was delivered, copied when it was announced.
  int completions = 0;
  bool cancelled = false;
  std::string after;  ///< What the memory was filled with at the completion.
  store::OperationHandle handle;

  [[nodiscard]] char* begin() { return memory.data() + 8; }
};

class Sequence {
 public:
  explicit Sequence(std::uint64_t seed) : random_(seed), world_(options(seed)) {
    world_.honours_if_match = !random_.chance(0.2);
    world_.cancel_latency = random_.chance(0.3) ? Duration(milliseconds(random_.below(50)))
                                                : Duration(microseconds(random_.below(100)));
    faults_ = random_.chance(0.2) ? 0.7 : 0.25;
    for (int i = 0; i < 4; ++i) replace("k" + std::to_string(i));
    world_.treat = [this](const FakeS3World::Seen&, std::size_t) {
      ++requests_;
      return random_treatment(random_, faults_);
    };
  }

  void run() {
    for (int i = 0; i < 20; ++i) start_read();
    for (int step = 0; step < 400; ++step) {
      world_.loop.run_for(microseconds(random_.below(3000)));
      act();
    }
    world_.loop.run_for(seconds(12));
    for (const auto& read : reads_) {
      ASSERT_EQ(read->completions, 1);
      ASSERT_EQ(read->memory, read->after) << "memory was written after the completion";
    }
    ASSERT_TRUE(world_.violations.empty()) << world_.violations.front();
    ASSERT_EQ(world_.live, 0U);
  }

  std::uint64_t requests_ = 0;
  std::uint64_t good_ = 0;

 private:
  static S3Options options(std::uint64_t seed) {
    S3Options out = FakeS3World::plain_options(1 + seed % 3);
    out.stall_timeout = milliseconds(300);
    out.hedge.samples_min = 10;
    out.hedge.quantile = 0.9;
    out.hedge.bytes_part_max = 0.5;  // So that hedges really happen.
    out.hedge.wait_min = milliseconds(1);
    out.hedge.saturated_part = 100;
    return out;
  }

  void replace(const std::string& key) {
    const std::uint64_t version = ++versions_;
    const std::size_t size = 5'000 + random_.below(40'000);
    world_.put(key, content(version, size));
    history_[world_.objects[key].etag] = world_.objects[key].bytes;
  }

  void act() {
    if (random_.chance(0.15)) start_read();
    if (random_.chance(0.03)) replace("k" + std::to_string(random_.below(4)));
    if (random_.chance(0.01)) world_.objects.erase("k" + std::to_string(random_.below(4)));
    if (reads_.empty()) return;
    Read& read = *reads_[random_.below(reads_.size())];
    if (random_.chance(0.1)) {
      if (read.completions == 0) read.cancelled = true;
      read.handle->cancel();
    }
    if (random_.chance(0.3)) read.handle->grant(random_.below(30'000));
  }

  void start_read() {
    auto owned = std::make_unique<Read>();
    Read& read = *owned;
    read.key = "k" + std::to_string(random_.below(5));  // One is never there.
    read.offset = random_.below(20'000);
    read.length = 1 + random_.below(20'000);
    read.memory.assign(read.length + 16, '?');
    read.deadline =
        world_.loop.now() + milliseconds(random_.chance(0.1) ? random_.below(20) : 10'000);
    store::GetRequest request;
    request.key = {read.key};
    request.offset = read.offset;
    request.length = read.length;
    std::uint64_t at = 0;
    while (at < read.length) {
      const std::uint64_t n = std::min(read.length - at, 1 + random_.below(9'000));
      request.destination.push_back(
          std::as_writable_bytes(std::span(read.begin() + at, static_cast<std::size_t>(n))));
      at += n;
    }
    request.deadline = read.deadline;
    if (random_.chance(0.2)) request.grant_bytes = random_.below(20'000);
    if (random_.chance(0.2) && world_.objects.contains(read.key)) {
      request.version = store::ObjectVersion{world_.objects[read.key].etag};
    }
    request.on_bytes = [this, &read](std::uint64_t n, const store::ObjectVersion& version) {
      ASSERT_EQ(read.completions, 0);
      ASSERT_GT(n, read.delivered);
      ASSERT_LE(n, read.length);
      if (read.version.empty()) read.version = version.text;
      ASSERT_EQ(read.version, version.text);
      read.snapshot.append(read.begin() + read.delivered, n - read.delivered);
      read.delivered = n;
      check_delivered(read);
    };
    read.handle = world_.store().get(
        world_.loop, std::move(request),
        [this, &read](Result<store::GetAnswer> result) { on_completion(read, std::move(result)); });
    reads_.push_back(std::move(owned));
  }

  /// What was announced is right, and stays.
  void check_delivered(Read& read) {
    const std::string& truth = history_.at(read.version);
    ASSERT_LE(read.offset + read.delivered, truth.size());
    ASSERT_EQ(read.snapshot, truth.substr(read.offset, read.delivered));
    ASSERT_EQ(std::string(read.begin(), read.delivered), read.snapshot);
  }

  void on_completion(Read& read, Result<store::GetAnswer> result) {
    ++read.completions;
    ASSERT_EQ(read.completions, 1);
    ASSERT_LE(world_.loop.now(), read.deadline + milliseconds(51));
    ASSERT_EQ(read.memory.substr(0, 8), "????????");
    ASSERT_EQ(read.memory.substr(read.memory.size() - 8), "????????");
    if (!read.version.empty()) check_delivered(read);
    if (result && result->outcome == GetOutcome::kOk) {
      ++good_;
      const std::string& truth = history_.at(result->version.text);
      ASSERT_TRUE(read.version.empty() || read.version == result->version.text);
      ASSERT_EQ(result->object_bytes, truth.size());
      ASSERT_EQ(std::string(read.begin(), read.length), truth.substr(read.offset, read.length));
    } else if (!result) {
      ASSERT_NE(result.error().code, ErrorCode::kInternal) << result.error().to_string();
      if (result.error().code == ErrorCode::kCancelled) {
        ASSERT_TRUE(read.cancelled);
      }
    }
    // The engine uses the memory again at once.
    std::ranges::fill(read.memory, '!');
    read.after = read.memory;
  }

  Random random_;
  FakeS3World world_;
  double faults_ = 0;
  std::uint64_t versions_ = 0;
  std::map<std::string, std::string> history_;  ///< Every version that ever was, by ETag.
  std::vector<std::unique_ptr<Read>> reads_;
};

TEST(RandomFaults, NothingWrongIsEverDelivered) {
  const auto only = static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed));
  const std::uint64_t first = only != 0 ? only : 1;
  const std::uint64_t last = only != 0 ? only : 300;
  std::uint64_t requests = 0;
  std::uint64_t good = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("again with --gtest_random_seed=" + std::to_string(seed));
    Sequence sequence(seed);
    sequence.run();
    if (HasFatalFailure()) return;
    requests += sequence.requests_;
    good += sequence.good_;
  }
  RecordProperty("requests", static_cast<int>(requests));
  RecordProperty("good", static_cast<int>(good));
  EXPECT_GT(good, (last - first + 1) * 10);
}

}  // namespace
}  // namespace objectcache::store_s3
