// SPDX-License-Identifier: Apache-2.0
//
// The relay that the others are compared with, as one would write it first: receive a datagram,
// write it to one connection after the other. One system call a packet and sink ("Daemon" of the
// OMSS paper). It takes SINKS connections, then relays until one of them is gone.
//
// Usage: tcp PORT SINKS LISTEN_PORT

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static int bound(int type, int port)
{
    int fd = socket(AF_INET, type, 0), yes = 1;
    need(fd >= 0, "socket");
    need(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), "SO_REUSEADDR");
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    need(!bind(fd, (struct sockaddr *)&here, sizeof here), "bind");
    return fd;
}

static void write_all(int to, const char *bytes, ssize_t left)
{
    while (left > 0) {
        ssize_t written = write(to, bytes, left);
        need(written > 0, "write");
        bytes += written;
        left -= written;
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s PORT SINKS LISTEN_PORT\n", argv[0]);
        return 2;
    }
    int count = atoi(argv[2]), room = 8 << 20, yes = 1;
    struct rlimit files = {count + 64, count + 64};
    need(!setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
    signal(SIGPIPE, SIG_IGN);
    int in = bound(SOCK_DGRAM, atoi(argv[1])), door = bound(SOCK_STREAM, atoi(argv[3]));
    need(!setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room), "SO_RCVBUFFORCE");
    need(!listen(door, 4096), "listen");
    int *sinks = calloc(count, sizeof *sinks);
    need(sinks != NULL, "calloc");
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        sinks[i] = accept(door, NULL, NULL);
        need(sinks[i] >= 0, "accept");
        need(!setsockopt(sinks[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes), "TCP_NODELAY");
    }

    char packet[65536];
    for (;;) {
        ssize_t bytes = recv(in, packet, sizeof packet, 0);
        need(bytes >= 0, "recv");
        for (int i = 0; i < count; i++)
            write_all(sinks[i], packet, bytes);
    }
}
