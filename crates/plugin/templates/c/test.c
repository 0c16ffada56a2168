/* The element by itself, as a program of this machine. */
#include "outflow_plugin.h"

#include <assert.h>
#include <stdlib.h>

void *outflow_alloc(size_t bytes) { return calloc(1, bytes); }

int main(void) {
    outflow_packet packets[3] = {{.kind = OUTFLOW_INTRA}, {.kind = OUTFLOW_BIDIRECTIONAL}, {.kind = OUTFLOW_PREDICTED}};
    outflow_answer answer = outflow_work(packets, 3, 0, 0);
    assert(answer.is_chosen && answer.action_count == 2);
    assert(answer.actions[0].packet == 0 && answer.actions[1].packet == 2);
    assert(!outflow_work(packets, 1, 0, 0).is_chosen);
}
