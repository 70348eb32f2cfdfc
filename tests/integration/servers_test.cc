#include "integration/servers.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace objectcache::integration {
namespace {

// "127.0.0.1" and "1234" of "...endpoint=http://127.0.0.1:1234&...".
std::pair<std::string, std::string> host_and_port(const std::string& url) {
  const std::size_t host = url.find("://", url.find("endpoint=")) + 3;
  const std::size_t colon = url.find(':', host);
  const std::size_t end = std::min(url.find('&', colon), url.size());
  return {url.substr(host, colon - host), url.substr(colon + 1, end - colon - 1)};
}

bool accepts_connections(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
  const int fd = socket(found->ai_family, found->ai_socktype, 0);
  const bool connected = connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  close(fd);
  freeaddrinfo(found);
  return connected;
}

class Servers : public ServerTest {};

TEST_P(Servers, AcceptConnectionsAndSayWhatTheyAre) {
  const auto [host, port] = host_and_port(server().url);
  EXPECT_TRUE(accepts_connections(host, port)) << server().url;
  EXPECT_FALSE(server().version.empty());
  EXPECT_FALSE(access_key().empty());
  EXPECT_EQ(access(cert_file("ca.pem").c_str(), R_OK), 0);
}

INSTANTIATE_TEST_SUITE_P(Servers, Servers, every_server(), server_name);

TEST(ServerUrls, TakeAPrefixBeforeTheirParameters) {
  EXPECT_EQ(with_prefix("s3://b/p?region=x", "q"), "s3://b/p/q?region=x");
  EXPECT_EQ(with_prefix("s3://b/p", "q"), "s3://b/p/q");
}

}  // namespace
}  // namespace objectcache::integration
