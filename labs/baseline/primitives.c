/* What a transport does most, in plain C (Figure 1 of "Implementing a user level multimedia transport protocol
 * in Java"): primitives copy|crc|udp COUNT [PORT]. Prints nanoseconds for one. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BYTES = 1024, BLOCKS = 64 };

static uint8_t from[BLOCKS][BYTES], to[BLOCKS][BYTES];
static uint32_t table[256];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* CRC-32 of MPEG-2 (ISO/IEC 13818-1, annex A). */
static uint32_t crc32(const uint8_t *data, size_t bytes) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < bytes; i++)
        crc = (crc << 8) ^ table[(crc >> 24) ^ data[i]];
    return crc;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    long count = atol(argv[2]);
    for (int i = 0; i < 256; i++) {
        uint32_t crc = (uint32_t)i << 24;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ (crc & 0x80000000 ? 0x04c11db7 : 0);
        table[i] = crc;
    }
    for (int i = 0; i < BLOCKS * BYTES; i++)
        from[i / BYTES][i % BYTES] = (uint8_t)(i * 7);
    unsigned sum = 0;
    double start = now();
    if (!strcmp(argv[1], "copy")) {
        for (long i = 0; i < count; i++) {
            memcpy(to[i % BLOCKS], from[i % BLOCKS], BYTES);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
    } else if (!strcmp(argv[1], "crc")) {
        for (long i = 0; i < count; i++)
            sum += crc32(from[i % BLOCKS], BYTES);
    } else {
        struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
        peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        start = now();
        for (long i = 0; i < count; i++)
            if (sendto(fd, from[i % BLOCKS], BYTES, 0, (void *)&peer, sizeof peer) < 0)
                sum++;
    }
    double ns = (now() - start) / count;
    printf("%f %u\n", ns, sum);
    return 0;
}
