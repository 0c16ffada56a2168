/* A host that joins a group by ordinary socket options, and prints the number that each datagram begins with.
 *
 *   member GROUP PORT OWN-ADDRESS [SOURCE]
 *
 * With a source, only what that sends is joined (IGMPv3). At SIGUSR1 it leaves, and goes on to listen. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static volatile sig_atomic_t is_to_leave;

static void leave(int signal) {
    (void)signal;
    is_to_leave = 1;
}

static void change(int at, int option, const void *value, socklen_t length) {
    if (setsockopt(at, IPPROTO_IP, option, value, length) < 0) {
        perror("setsockopt");
        exit(1);
    }
}

int main(int count, char **words) {
    if (count < 4) {
        fprintf(stderr, "member GROUP PORT OWN-ADDRESS [SOURCE]\n");
        return 2;
    }
    int at = socket(AF_INET, SOCK_DGRAM, 0);
    int yes = 1;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
    here.sin_addr.s_addr = inet_addr(words[1]);
    if (at < 0 || setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(at, (struct sockaddr *)&here, sizeof here) < 0) {
        perror("socket");
        return 1;
    }
    struct ip_mreq all = {.imr_multiaddr = here.sin_addr};
    all.imr_interface.s_addr = inet_addr(words[3]);
    struct ip_mreq_source one = {.imr_multiaddr = all.imr_multiaddr, .imr_interface = all.imr_interface};
    if (count > 4) {
        one.imr_sourceaddr.s_addr = inet_addr(words[4]);
        change(at, IP_ADD_SOURCE_MEMBERSHIP, &one, sizeof one);
    } else {
        change(at, IP_ADD_MEMBERSHIP, &all, sizeof all);
    }
    struct sigaction action = {.sa_handler = leave};
    sigaction(SIGUSR1, &action, NULL);
    puts("joined");
    for (;;) {
        fflush(stdout);
        if (is_to_leave) {
            is_to_leave = 0;
            if (count > 4)
                change(at, IP_DROP_SOURCE_MEMBERSHIP, &one, sizeof one);
            else
                change(at, IP_DROP_MEMBERSHIP, &all, sizeof all);
            puts("left");
            continue;
        }
        unsigned char bytes[65536];
        ssize_t length = recv(at, bytes, sizeof bytes, 0);
        if (length >= 4)
            printf("%u\n", (unsigned)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]);
        else if (length < 0 && errno != EINTR)
            return 1;
    }
}
