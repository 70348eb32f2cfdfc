/* nfqdelay: holds each packet of one NFQUEUE for a fixed time, then accepts it. A latency emulator
 * for kernels without netem.
 *
 *   nfqdelay QUEUE DELAY_US SECONDS
 *
 * QUEUE is the number that a rule like '-j NFQUEUE --queue-num 7' sends packets to; a queue that
 * nobody reads drops them. Ends after SECONDS, or on SIGTERM or SIGINT, and says how many packets
 * it held. Needs CAP_NET_ADMIN.
 *
 * Build: cc -O2 -o nfqdelay nfqdelay.c -lmnl -lnetfilter_queue
 *
 * Only the packets' ids are copied to user space. All have the same delay, so that they come due in
 * the order in which they came, and one batch verdict accepts all that are due: that is what keeps
 * it fast.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>

enum {
  kHeldMax = 65536, /* ring of packets on hold; a power of two */
  kQueueLength =
      kHeldMax / 2, /* what the kernel may hand us before it drops: the ring cannot overflow */
  kReceiveBuffer = 1 << 24,
};
static const int64_t kNanosecondsPerSecond = 1000000000;
static const int64_t kIdleWait = 50000000; /* how soon a stop is noticed, in ns */

struct held {
  uint32_t id;
  int64_t due_ns;
};

static struct held ring[kHeldMax];
static unsigned newest, oldest; /* indexes of the ring, counting on without end */
static int64_t delay_ns;
static uint16_t queue_number;
static struct mnl_socket* netlink;
static volatile sig_atomic_t stopped;

static void on_signal(int number) {
  (void)number;
  stopped = 1;
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kNanosecondsPerSecond + t.tv_nsec;
}

static void die(const char* what) {
  fprintf(stderr, "nfqdelay: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct nlmsghdr* new_message(char* buffer, int type) {
  struct nlmsghdr* message = mnl_nlmsg_put_header(buffer);
  message->nlmsg_type = (uint16_t)((NFNL_SUBSYS_QUEUE << 8) | type);
  message->nlmsg_flags = NLM_F_REQUEST;
  struct nfgenmsg* body = mnl_nlmsg_put_extra_header(message, sizeof *body);
  body->nfgen_family = AF_UNSPEC;
  body->version = NFNETLINK_V0;
  body->res_id = htons(queue_number);
  return message;
}

static void send_message(const struct nlmsghdr* message) {
  if (mnl_socket_sendto(netlink, message, message->nlmsg_len) < 0) die("send to the kernel");
}

/* Every packet up to and with `id`, or it alone. */
static void accept_packets(uint32_t id, int batch) {
  char buffer[256];
  struct nlmsghdr* message =
      new_message(buffer, batch ? NFQNL_MSG_VERDICT_BATCH : NFQNL_MSG_VERDICT);
  struct nfqnl_msg_verdict_hdr verdict = {.verdict = htonl(NF_ACCEPT), .id = htonl(id)};
  mnl_attr_put(message, NFQA_VERDICT_HDR, sizeof verdict, &verdict);
  send_message(message);
}

static int on_packet(const struct nlmsghdr* message, void* unused) {
  (void)unused;
  struct nlattr* attributes[NFQA_MAX + 1] = {0};
  if (nfq_nlmsg_parse(message, attributes) < 0 || attributes[NFQA_PACKET_HDR] == NULL)
    return MNL_CB_OK;
  const struct nfqnl_msg_packet_hdr* packet = mnl_attr_get_payload(attributes[NFQA_PACKET_HDR]);
  struct held* slot = &ring[newest++ % kHeldMax];
  slot->id = ntohl(packet->packet_id);
  slot->due_ns = now_ns() + delay_ns;
  return MNL_CB_OK;
}

static void bind_queue(char* buffer) {
  netlink = mnl_socket_open(NETLINK_NETFILTER);
  if (netlink == NULL) die("open netlink");
  if (mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID) < 0) die("bind netlink");

  struct nlmsghdr* message = new_message(buffer, NFQNL_MSG_CONFIG);
  nfq_nlmsg_cfg_put_cmd(message, AF_INET, NFQNL_CFG_CMD_BIND);
  send_message(message);

  message = new_message(buffer, NFQNL_MSG_CONFIG);
  nfq_nlmsg_cfg_put_params(message, NFQNL_COPY_META, 0);
  mnl_attr_put_u32(message, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO)); /* large segments stay large */
  mnl_attr_put_u32(message, NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO));
  mnl_attr_put_u32(message, NFQA_CFG_QUEUE_MAXLEN, htonl(kQueueLength));
  send_message(message);

  const int bytes = kReceiveBuffer, on = 1;
  setsockopt(mnl_socket_get_fd(netlink), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  setsockopt(mnl_socket_get_fd(netlink), SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on);
}

static void wait_for_packets(char* buffer, size_t size) {
  int64_t wait_ns = newest != oldest ? ring[oldest % kHeldMax].due_ns - now_ns() : kIdleWait;
  if (wait_ns > kIdleWait) wait_ns = kIdleWait;
  if (wait_ns < 0) wait_ns = 0;
  struct pollfd fd = {.fd = mnl_socket_get_fd(netlink), .events = POLLIN};
  const struct timespec wait = {.tv_sec = 0, .tv_nsec = wait_ns};
  if (ppoll(&fd, 1, &wait, NULL) <= 0) return;
  const ssize_t got = recv(fd.fd, buffer, size, MSG_DONTWAIT);
  if (got > 0) mnl_cb_run(buffer, (size_t)got, 0, mnl_socket_get_portid(netlink), on_packet, NULL);
}

static long release_due(void) {
  const int64_t now = now_ns();
  const unsigned first = oldest;
  while (oldest != newest && ring[oldest % kHeldMax].due_ns <= now) ++oldest;
  const long count = (long)(oldest - first);
  if (count > 0) accept_packets(ring[(oldest - 1) % kHeldMax].id, count > 1);
  return count;
}

static double number_of(const char* text, double least, double most, const char* name) {
  char* end = NULL;
  const double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most)) {
    fprintf(stderr, "nfqdelay: %s is %g to %g, not '%s'\n", name, least, most, text);
    exit(2);
  }
  return value;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: nfqdelay QUEUE DELAY_US SECONDS\n");
    return 2;
  }
  queue_number = (uint16_t)number_of(argv[1], 0, 65535, "QUEUE");
  delay_ns = (int64_t)(number_of(argv[2], 0, 1e6, "DELAY_US") * 1000);
  const int64_t end =
      now_ns() + (int64_t)(number_of(argv[3], 0, 1e6, "SECONDS") * (double)kNanosecondsPerSecond);
  const struct sigaction stop = {.sa_handler = on_signal};
  sigaction(SIGTERM, &stop, NULL);
  sigaction(SIGINT, &stop, NULL);

  static char buffer[1 << 18];
  bind_queue(buffer);
  long packets = 0;
  while (!stopped && now_ns() < end) {
    wait_for_packets(buffer, sizeof buffer);
    packets += release_due();
  }
  if (newest != oldest) accept_packets(ring[(newest - 1) % kHeldMax].id, 1);
  fprintf(stderr, "%ld packets\n", packets);
  return 0;
}
