/* NAME: lets everything pass but frames that nothing else needs. */
#include "outflow_plugin.h"

outflow_setup outflow_init(outflow_text config, outflow_format input) {
    (void)config, (void)input;
    /* What the relay knows of a packet is enough; OUTFLOW_SEE_HEAD and _ALL ask for its bytes. */
    return (outflow_setup){0, OUTFLOW_SEE_NONE, 0};
}

outflow_answer outflow_work(const outflow_packet *packets, uint32_t count, uint8_t *bytes, uint32_t byte_count) {
    (void)bytes, (void)byte_count;
    outflow_action *actions = outflow_alloc(count * sizeof *actions);
    uint32_t passing = 0;
    for (uint32_t i = 0; i < count; i++)
        if (packets[i].kind != OUTFLOW_BIDIRECTIONAL) actions[passing++] = (outflow_action){.packet = i};
    return (outflow_answer){passing < count, actions, passing, 0, 0};
}
