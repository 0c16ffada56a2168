/* The contract of elements (outflow:plugin@1.0.0, wit/plugin.wit) for C, without any library: the
 * records lie in memory as the component model's canonical ABI has them.
 *
 * An element defines outflow_init() and outflow_work(). What it is given in a call is its own until
 * the call is over; what it answers may lie there, in memory from outflow_alloc(), or in its own
 * variables. Memory of a call is gone after it. */
#ifndef OUTFLOW_PLUGIN_H
#define OUTFLOW_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct { const char *text; uint32_t length; } outflow_text;

typedef struct {
    outflow_text codec, encoding, fmtp;
    uint32_t clock_rate;
    uint8_t channels, is_video;
} outflow_track;

enum { OUTFLOW_TS, OUTFLOW_RTP, OUTFLOW_IMAGES };
enum { OUTFLOW_SEE_NONE, OUTFLOW_SEE_HEAD, OUTFLOW_SEE_ALL, OUTFLOW_SEE_PARTS };
enum { OUTFLOW_HEADER, OUTFLOW_INTRA, OUTFLOW_PREDICTED, OUTFLOW_BIDIRECTIONAL, OUTFLOW_ENHANCEMENT, OUTFLOW_DATA };
enum { OUTFLOW_FIRST = 1, OUTFLOW_LAST = 2, OUTFLOW_KEY = 4 };

typedef struct {
    uint32_t kind; /* OUTFLOW_TS, OUTFLOW_RTP or OUTFLOW_IMAGES */
    const outflow_track *tracks;
    uint32_t track_count;
} outflow_format;

typedef struct {
    uint64_t arrived;        /* nanoseconds */
    uint32_t offset, length; /* of its bytes in the batch's; of a part in the packet */
    uint32_t size;           /* all its bytes */
    uint32_t frame;
    uint8_t track, kind, layer, marks;
    uint32_t needs;
} outflow_packet;

typedef struct {
    uint32_t packet;
    uint8_t port;
    uint32_t has_edit; /* 0 or 1; what follows counts only with 1 */
    uint32_t offset, length, after;
} outflow_action;

typedef struct {
    uint32_t is_chosen; /* 0: everything passes as it is; the rest does not count then */
    const outflow_action *actions;
    uint32_t action_count;
    const uint8_t *bytes;
    uint32_t byte_count;
} outflow_answer;

typedef struct {
    uint32_t is_error;
    uint32_t see;  /* OUTFLOW_SEE_…; the text of an error, if it is one */
    uint32_t head; /* bytes, with OUTFLOW_SEE_HEAD and _PARTS; the length of that text */
} outflow_setup;

/* What an element defines. */
outflow_setup outflow_init(outflow_text config, outflow_format input);
outflow_answer outflow_work(const outflow_packet *packets, uint32_t count, uint8_t *bytes, uint32_t byte_count);

/* What is there for it. */
void *outflow_alloc(size_t bytes);
/* These take the place of as many bytes at the beginning of the part, the next part begins behind them. */
void outflow_write(const void *bytes, size_t count);
outflow_setup outflow_refuse(const char *why);

#endif
