// SPDX-License-Identifier: Apache-2.0
//
// Work on images as one would write it first, and as the host applications of "An Approach Towards
// Enabling Intelligent Networking Services for Distributed Multimedia Applications" do it: receive a
// whole image in a datagram, work on it, send it on.
//
// Usage: images PORT ADDRESS PORT forward|gray|pgm
// gray: each pixel has its luma three times, and the image keeps its size; pgm: it has it once.

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

// Where the pixels of a PPM image begin: behind four words and one white space; 0 if it is none.
static size_t pixels(const unsigned char *image, size_t size)
{
    size_t at = 2;
    if (size < 2 || image[0] != 'P' || image[1] != '6')
        return 0;
    for (int number = 0; number < 3; number++) {
        while (at < size && (image[at] <= ' ' || image[at] == '#')) {
            if (image[at++] == '#')
                while (at < size && image[at] != '\n')
                    at++;
        }
        while (at < size && image[at] >= '0' && image[at] <= '9')
            at++;
    }
    return at < size ? at + 1 : 0;
}

static unsigned char luma(const unsigned char *pixel)
{
    return (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) >> 8;
}

static void gray(unsigned char *restrict at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        at[3 * i] = at[3 * i + 1] = at[3 * i + 2] = luma(at + 3 * i);
}

static void pgm(unsigned char *to, const unsigned char *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = luma(from + 3 * i);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s PORT ADDRESS PORT forward|gray|pgm\n", argv[0]);
        return 2;
    }
    int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0), room = 8 << 20;
    need(in >= 0 && out >= 0, "socket");
    need(!setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room), "SO_RCVBUFFORCE");
    need(!setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room), "SO_SNDBUFFORCE");
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    need(!bind(in, (struct sockaddr *)&here, sizeof here), "bind");
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
    there.sin_addr.s_addr = inet_addr(argv[2]);
    puts("ready");
    fflush(stdout);

    static unsigned char image[65536];
    for (;;) {
        ssize_t bytes = recv(in, image, sizeof image, 0);
        need(bytes >= 0, "recv");
        size_t begin = strcmp(argv[4], "forward") ? pixels(image, bytes) : 0;
        if (begin && !strcmp(argv[4], "gray")) {
            gray(image + begin, (bytes - begin) / 3);
        } else if (begin) {
            image[1] = '5';
            pgm(image + begin, image + begin, (bytes - begin) / 3);
            bytes = begin + (bytes - begin) / 3;
        }
        sendto(out, image, bytes, 0, (struct sockaddr *)&there, sizeof there);
    }
}
