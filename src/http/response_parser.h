#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "http/client.h"

namespace objectcache::http {

/// How the end of an answer's body is told.
enum class BodyFraming : std::uint8_t {
  kNone,        ///< There is no body: HEAD, 204, 304.
  kLength,      ///< Content-Length.
  kChunked,     ///< Transfer-Encoding: chunked; decode with ChunkedDecoder.
  kUntilClose,  ///< The connection ends with it.
};

/// Takes the bytes of a connection up to the end of an answer's head and says what the head means.
/// Total: any bytes give a head or an error, in bounded memory and linear work. Interim answers
/// (1xx) are skipped. Pure: no socket, no clock.
///
/// The owner reads into space(), which is small, so that few bytes of a body come here by
/// accident; those wait in rest().
///
/// Threads: one.
class ResponseParser {
 public:
  struct Limits {
    std::size_t head_bytes_max = 32 * 1024;  ///< Of a head, and of all heads of interim answers.
    std::size_t read_bytes = 2048;           ///< Of space(), more or less.
    unsigned interim_max = 8;
  };
  ResponseParser();
  explicit ResponseParser(Limits limits);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Makes ready for the next answer of the connection; rest() must be empty.
  void start(bool answers_head_request);
  /// Where to put what comes next; never empty while the head is incomplete.
  [[nodiscard]] Segment space();
  /// `bytes` of space() are filled. True: the head is complete. Errors: kCorrupt (not HTTP),
  /// kLimitExceeded (head too large); start() is the only call allowed then.
  [[nodiscard]] Result<bool> commit(std::size_t bytes);

  /// The following are valid once commit() gave true.
  [[nodiscard]] ResponseHead& head();
  [[nodiscard]] BodyFraming framing() const;
  [[nodiscard]] bool keep_alive() const;
  /// Bytes that came behind the head.
  [[nodiscard]] std::span<const std::byte> rest() const;
  void consume(std::size_t bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Takes a body in chunked transfer coding apart. Total, constant memory; pure.
///
/// Threads: one.
class ChunkedDecoder {
 public:
  struct Step {
    std::size_t consumed = 0;         ///< Bytes of the input that are used up.
    std::span<const std::byte> data;  ///< Part of the input that belongs to the body. May be empty.
    bool done = false;                ///< The body is complete; the rest of the input is not its.
  };
  /// Call with what is left of the input until all is consumed or `done`. kCorrupt: not chunked
  /// coding, or extensions and trailers beyond 8 KiB.
  [[nodiscard]] Result<Step> next(std::span<const std::byte> input);

 private:
  enum class State : std::uint8_t {
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailer,
    kTrailerLf,
    kEndLf,
    kDone,
  };
  [[nodiscard]] bool accept(char c);

  State state_ = State::kSize;
  std::uint64_t left_ = 0;  ///< Of the current chunk.
  unsigned digits_ = 0;     ///< Of the size that is being read.
  unsigned overhead_ = 0;   ///< Bytes of extensions and trailers so far.
};

}  // namespace objectcache::http
