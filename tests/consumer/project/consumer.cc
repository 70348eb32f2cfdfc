// Uses the installed package from C++: nothing but its headers and its library.

#include <objectcache/error.h>

#include <iostream>

int main() {
  const objectcache::Error error{.code = objectcache::ErrorCode::kThrottled,
                                 .message = "asked to slow down",
                                 .action = "GET",
                                 .key = "s3://bucket/key",
                                 .s3_code = "SlowDown",
                                 .request_id = "1",
                                 .http_status = 503};
  std::cout << error.to_string() << '\n';
  return objectcache::is_retryable(error.code) ? 0 : 1;
}
