#include "CWebSockets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int roost_identify(const char *path, unsigned long *device, unsigned long *inode) {
    struct stat status;
    if (lstat(path, &status)) return -1;
    *device = status.st_dev;
    *inode = status.st_ino;
    return 0;
}

// 0 if the way is free, else -1 with errno.
static int clear_way(const struct sockaddr_un *address) {
    struct stat status;
    if (lstat(address->sun_path, &status)) return errno == ENOENT ? 0 : -1;
    if (!S_ISSOCK(status.st_mode)) {
        errno = ENOTSOCK;
        return -1;
    }
    // Non-blocking, because a listener with a full queue would keep us waiting.
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0) return -1;
    int failure = connect(probe, (const struct sockaddr *)address, sizeof *address) ? errno : 0;
    close(probe);
    // Only the kernel reports this, and only if nothing listens (connect(2)).
    if (failure == ECONNREFUSED) return unlink(address->sun_path);
    errno = failure == 0 || failure == EAGAIN ? EADDRINUSE : failure;
    return -1;
}

int roost_listen_unix(const char *path, unsigned int mode, int backlog) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    if (clear_way(&address)) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    // Linux gives the file the socket's permissions minus the umask (unix(7)): at first no more than wanted, so that no
    // client slips in between, then exactly those.
    if (!fchmod(fd, mode) && !bind(fd, (const struct sockaddr *)&address, sizeof address)) {
        if (!chmod(path, mode) && !listen(fd, backlog)) return fd;
        int failure = errno;
        unlink(path);
        errno = failure;
    }
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

void roost_unlink_unix(const char *path, unsigned long device, unsigned long inode) {
    unsigned long now_device, now_inode;
    if (!roost_identify(path, &now_device, &now_inode) && now_device == device && now_inode == inode) unlink(path);
}
