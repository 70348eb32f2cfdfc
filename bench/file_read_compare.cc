// Ways to read random ranges of many files into the caller's memory, side by side: preadv on a few
// threads, the same through a second buffer, O_DIRECT, io_uring, and the file store itself. The
// figures behind docs/adr/0002-file-store-io.md.
//
//   file_read_compare DIR [--range-kib 1024] [--total-mib 1024] [--files 256] [--rounds 5]
//
// Prints medians over the rounds; in a round every way runs once, so that all see the same load.

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/thread_event_loop.h"
#include "store/file/file_store.h"

namespace {

using namespace objectcache;         // NOLINT
using namespace objectcache::store;  // NOLINT

constexpr std::size_t kFileBytes = std::size_t{4} << 20;

struct Setup {
  std::string folder;
  std::size_t range_bytes = std::size_t{1} << 20;
  std::size_t total_bytes = std::size_t{1} << 30;
  std::size_t files = 256;
  int rounds = 5;
};
struct Read {
  std::size_t file;
  std::uint64_t offset;
  std::byte* to;
};
struct Workload {
  Setup setup;
  std::vector<Read> reads;
  [[nodiscard]] std::string key(std::size_t file) const { return "f/" + std::to_string(file); }
  [[nodiscard]] std::string path(std::size_t file) const {
    return setup.folder + "/" + key(file) + "@";
  }
};

[[noreturn]] void die(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

int open_file(const Workload& work, const Read& read, int flags) {
  const int file = ::open(work.path(read.file).c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (file < 0) die("open");
  return file;
}

void read_by_threads(const Workload& work, int threads, int flags, bool bounce) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&] {
      std::vector<std::byte> buffer(bounce ? work.setup.range_bytes : 0);
      for (std::size_t i = next++; i < work.reads.size(); i = next++) {
        const Read& read = work.reads[i];
        const int file = open_file(work, read, flags);
        std::byte* to = bounce ? buffer.data() : read.to;
        if (::pread(file, to, work.setup.range_bytes, static_cast<off_t>(read.offset)) !=
            static_cast<ssize_t>(work.setup.range_bytes)) {
          die("pread");
        }
        if (bounce) std::memcpy(read.to, to, work.setup.range_bytes);
        ::close(file);
      }
    });
  }
  for (auto& thread : pool) thread.join();
}

/// The smallest use of io_uring: one ring, `depth` reads in flight, one thread.
class Ring {
 public:
  explicit Ring(unsigned depth) {
    io_uring_params params{};
    fd_ = static_cast<int>(::syscall(SYS_io_uring_setup, depth, &params));
    if (fd_ < 0) die("io_uring_setup");
    const std::size_t bytes =
        std::max(params.sq_off.array + params.sq_entries * sizeof(unsigned),
                 params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe));
    auto* ring =
        static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_POPULATE, fd_, IORING_OFF_SQ_RING));
    entries_ = static_cast<io_uring_sqe*>(::mmap(nullptr, params.sq_entries * sizeof(io_uring_sqe),
                                                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                                                 fd_, static_cast<off_t>(IORING_OFF_SQES)));
    const auto at = [&](unsigned offset) { return reinterpret_cast<unsigned*>(ring + offset); };
    tail_ = at(params.sq_off.tail);
    mask_ = *at(params.sq_off.ring_mask);
    array_ = at(params.sq_off.array);
    done_head_ = at(params.cq_off.head);
    done_tail_ = at(params.cq_off.tail);
    done_mask_ = *at(params.cq_off.ring_mask);
    done_ = reinterpret_cast<io_uring_cqe*>(ring + params.cq_off.cqes);
  }
  ~Ring() { ::close(fd_); }
  void push(int file, std::byte* to, std::size_t bytes, std::uint64_t offset, std::size_t tag) {
    const unsigned slot = *tail_ & mask_;
    entries_[slot] = io_uring_sqe{};
    entries_[slot].opcode = IORING_OP_READ;
    entries_[slot].fd = file;
    entries_[slot].addr = reinterpret_cast<std::uint64_t>(to);
    entries_[slot].len = static_cast<unsigned>(bytes);
    entries_[slot].off = offset;
    entries_[slot].user_data = tag;
    array_[slot] = slot;
    std::atomic_ref(*tail_).store(*tail_ + 1, std::memory_order_release);
    ++pushed_;
  }
  /// Waits for one completion; gives its tag.
  std::size_t pop(std::size_t bytes) {
    while (*done_head_ == std::atomic_ref(*done_tail_).load(std::memory_order_acquire)) {
      const auto entered = ::syscall(SYS_io_uring_enter, fd_, std::exchange(pushed_, 0U), 1,
                                     IORING_ENTER_GETEVENTS, nullptr, 0);
      if (entered < 0 && errno != EINTR) die("io_uring_enter");
    }
    const io_uring_cqe& entry = done_[*done_head_ & done_mask_];
    if (entry.res != static_cast<int>(bytes)) die("io_uring read");
    const std::size_t tag = entry.user_data;
    std::atomic_ref(*done_head_).store(*done_head_ + 1, std::memory_order_release);
    return tag;
  }

 private:
  int fd_ = -1;
  io_uring_sqe* entries_ = nullptr;
  io_uring_cqe* done_ = nullptr;
  unsigned *tail_ = nullptr, *array_ = nullptr, *done_head_ = nullptr, *done_tail_ = nullptr;
  unsigned mask_ = 0, done_mask_ = 0, pushed_ = 0;
};

void read_by_ring(const Workload& work, unsigned depth, int flags) {
  Ring ring(depth);
  std::vector<int> files(work.reads.size(), -1);
  std::size_t begun = 0;
  for (std::size_t finished = 0; finished < work.reads.size(); ++finished) {
    for (; begun < work.reads.size() && begun - finished < depth; ++begun) {
      const Read& read = work.reads[begun];
      files[begun] = open_file(work, read, flags);
      ring.push(files[begun], read.to, work.setup.range_bytes, read.offset, begun);
    }
    ::close(files[ring.pop(work.setup.range_bytes)]);
  }
}

void read_by_store(const Workload& work, std::size_t threads, bool isolate, bool direct) {
  const auto store = FileStore::open({.directory = work.setup.folder,
                                      .min_free_bytes = 0,
                                      .isolate = isolate,
                                      .direct = direct,
                                      .threads = threads})
                         .value();
  ThreadEventLoop loop;
  std::size_t begun = 0;
  std::size_t finished = 0;
  std::function<void()> start_next = [&] {
    if (begun == work.reads.size()) return;
    const Read& read = work.reads[begun++];
    store->get(loop,
               {.key = {work.key(read.file)},
                .offset = read.offset,
                .length = work.setup.range_bytes,
                .destination = {Segment(read.to, work.setup.range_bytes)},
                .deadline = loop.now() + std::chrono::minutes(5)},
               [&](Result<GetAnswer> answer) {
                 if (!answer || answer->outcome != GetOutcome::kOk) die("store");
                 ++finished;
                 start_next();
               });
  };
  for (int i = 0; i < 32; ++i) start_next();
  if (!loop.run_until([&] { return finished == work.reads.size(); },
                      loop.now() + std::chrono::minutes(10))) {
    die("store: too slow");
  }
}

void make_files(const Workload& work) {
  std::filesystem::create_directories(work.setup.folder + "/f");
  std::vector<std::byte> body(kFileBytes, std::byte{0x42});
  for (std::size_t i = 0; i < work.setup.files; ++i) {
    const int file = ::open(work.path(i).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, body.data(), body.size()) != static_cast<ssize_t>(body.size()) ||
        ::fsync(file) != 0) {
      die("make files");
    }
    ::close(file);
  }
}

void set_cached(const Workload& work, bool cached) {
  std::vector<std::byte> body(cached ? kFileBytes : 0);
  for (std::size_t i = 0; i < work.setup.files; ++i) {
    const int file = ::open(work.path(i).c_str(), O_RDONLY | O_CLOEXEC);
    if (cached && ::pread(file, body.data(), body.size(), 0) < 0) die("warm up");
    if (!cached) ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Way {
  std::string name;
  std::function<void(const Workload&)> run;
};
std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const int n : {1, 4, 8}) {
    ways.push_back({"preadv, " + std::to_string(n) + " threads",
                    [n](const Workload& w) { read_by_threads(w, n, 0, false); }});
  }
  ways.push_back(
      {"preadv + copy, 8 threads", [](const Workload& w) { read_by_threads(w, 8, 0, true); }});
  for (const int n : {1, 8}) {
    ways.push_back({"O_DIRECT, " + std::to_string(n) + " threads",
                    [n](const Workload& w) { read_by_threads(w, n, O_DIRECT, false); }});
  }
  for (const unsigned n : {8U, 32U}) {
    ways.push_back({"io_uring, depth " + std::to_string(n),
                    [n](const Workload& w) { read_by_ring(w, n, 0); }});
    ways.push_back({"io_uring O_DIRECT, depth " + std::to_string(n),
                    [n](const Workload& w) { read_by_ring(w, n, O_DIRECT); }});
  }
  for (const std::size_t n : {1U, 4U, 8U}) {
    ways.push_back({"FileStore, " + std::to_string(n) + " threads",
                    [n](const Workload& w) { read_by_store(w, n, false, false); }});
  }
  ways.push_back({"FileStore isolate, 8 threads",
                  [](const Workload& w) { read_by_store(w, 8, true, false); }});
  ways.push_back(
      {"FileStore direct, 8 threads", [](const Workload& w) { read_by_store(w, 8, false, true); }});
  return ways;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: file_read_compare DIR [--range-kib N] [--total-mib N] ...\n");
    return 2;
  }
  Workload work;
  work.setup.folder = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const std::size_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--range-kib") work.setup.range_bytes = value << 10;
    if (option == "--total-mib") work.setup.total_bytes = value << 20;
    if (option == "--files") work.setup.files = value;
    if (option == "--rounds") work.setup.rounds = static_cast<int>(value);
  }
  make_files(work);
  // Aligned for O_DIRECT and touched before, so that no way pays for page faults.
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(4096, work.setup.total_bytes));
  std::memset(memory, 1, work.setup.total_bytes);
  Random random(1);
  for (std::size_t at = 0; at + work.setup.range_bytes <= work.setup.total_bytes;
       at += work.setup.range_bytes) {
    const std::uint64_t slots = kFileBytes / work.setup.range_bytes;
    work.reads.push_back({random.below(work.setup.files),
                          random.below(slots) * work.setup.range_bytes, memory + at});
  }
  std::printf("%zu reads of %zu KiB from %zu files of 4 MiB, medians of %d rounds\n\n",
              work.reads.size(), work.setup.range_bytes >> 10, work.setup.files, work.setup.rounds);
  std::printf("%-28s %12s %12s %12s %12s\n", "", "cached MB/s", "CPU s/GB", "cold MB/s",
              "CPU s/GB");
  const auto ways = all_ways();
  std::map<std::pair<std::string, bool>, std::vector<double>> speed;
  std::map<std::pair<std::string, bool>, std::vector<double>> cpu;
  const double gb = static_cast<double>(work.reads.size() * work.setup.range_bytes) / 1e9;
  for (int round = 0; round < work.setup.rounds; ++round) {
    for (const bool cached : {true, false}) {
      for (const Way& way : ways) {
        set_cached(work, cached);
        const auto start = std::chrono::steady_clock::now();
        const double cpu_start = cpu_seconds();
        way.run(work);
        const std::chrono::duration<double> span = std::chrono::steady_clock::now() - start;
        speed[{way.name, cached}].push_back(gb * 1000 / span.count());
        cpu[{way.name, cached}].push_back((cpu_seconds() - cpu_start) / gb);
      }
    }
  }
  for (const Way& way : ways) {
    std::printf("%-28s %12.0f %12.3f %12.0f %12.3f\n", way.name.c_str(),
                median(speed[{way.name, true}]), median(cpu[{way.name, true}]),
                median(speed[{way.name, false}]), median(cpu[{way.name, false}]));
  }
  std::filesystem::remove_all(work.setup.folder + "/f");
  return 0;
}
