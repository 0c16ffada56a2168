// SPDX-License-Identifier: Apache-2.0
//
// The relay that the others are compared with, as one would write it first: receive a datagram, send
// it to one sink after the other. One system call a packet and sink ("Daemon" of the OMSS paper).
//
// Usage: udp PORT SINKS FIRST_ADDRESS FIRST_PORT PORTS
// Sinks are numbered through addresses from FIRST_ADDRESS on, PORTS on each, in steps of two.

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: %s PORT SINKS FIRST_ADDRESS FIRST_PORT PORTS\n", argv[0]);
        return 2;
    }
    int count = atoi(argv[2]), first_port = atoi(argv[4]), ports = atoi(argv[5]);
    in_addr_t first = ntohl(inet_addr(argv[3]));
    struct sockaddr_in *sinks = calloc(count, sizeof *sinks);
    need(sinks != NULL, "calloc");
    for (int i = 0; i < count; i++) {
        sinks[i].sin_family = AF_INET;
        sinks[i].sin_addr.s_addr = htonl(first + i / ports);
        sinks[i].sin_port = htons(first_port + i % ports * 2);
    }
    int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0), room = 8 << 20;
    need(in >= 0 && out >= 0, "socket");
    need(!setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room), "SO_RCVBUFFORCE");
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    need(!bind(in, (struct sockaddr *)&here, sizeof here), "bind");
    puts("ready");
    fflush(stdout);

    char packet[65536];
    for (;;) {
        ssize_t bytes = recv(in, packet, sizeof packet, 0);
        need(bytes >= 0, "recv");
        for (int i = 0; i < count; i++)
            sendto(out, packet, bytes, 0, (struct sockaddr *)&sinks[i], sizeof sinks[i]);
    }
}
