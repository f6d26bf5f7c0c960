// The kernel's header, because glibc's structure ends before the field needed here. The two conflict, and CWebSockets.h
// includes glibc's through libwebsockets'.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

// Declared in CWebSockets.h.
long long roost_bytes_acked(int fd);

long long roost_bytes_acked(int fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) return -1;
    if (size < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) return -1;
    return (long long)info.tcpi_bytes_acked;
}
