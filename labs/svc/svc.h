// What both encoders of layers share: the plan of the frames, the pictures, and what is written.
//
//   PROGRAM WIDTH HEIGHT SPATIAL TEMPORAL PLAN PICTURES OUT KBPS KBPS KBPS
//
// PLAN has a line for each layer frame, the spatial layers of a picture one after the other:
//
//   KEY SPATIAL TEMPORAL OWN BELOW STORE
//
// KEY is 1 in key pictures. The frame refers to what is in the slots OWN (of its spatial layer) and BELOW, and
// is kept in the slot STORE; -1 is none. PICTURES is raw I420. OUT gets each frame behind its length (32 bits,
// little endian), in the order of the plan. KBPS is kilobits a second of each spatial layer.

#ifndef OUTFLOW_SVC_H
#define OUTFLOW_SVC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SPATIAL_MAX 3
#define RATE 30

struct frame {
    int key, spatial, temporal, own, below, store;
};

struct job {
    int width, height, spatial, temporal;
    FILE *plan, *pictures, *out;
};

// Kilobits a second of each spatial layer, and the part of it that goes up to each temporal one, of three.
static int spatial_rates[SPATIAL_MAX];
static const int TEMPORAL_PERCENT[3] = {50, 75, 100};

static inline void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why ? why : "it failed");
    exit(1);
}

static inline FILE *opened(const char *name, const char *mode) {
    FILE *file = fopen(name, mode);
    if (!file) fail(name, "cannot be opened");
    return file;
}

static inline struct job job_of(int count, char **words) {
    if (count != 8 + SPATIAL_MAX) fail(words[0], "WIDTH HEIGHT SPATIAL TEMPORAL PLAN PICTURES OUT KBPS KBPS KBPS");
    for (int s = 0; s < SPATIAL_MAX; s++) spatial_rates[s] = atoi(words[8 + s]);
    struct job job = {atoi(words[1]), atoi(words[2]), atoi(words[3]), atoi(words[4]),
                      opened(words[5], "r"), opened(words[6], "rb"), opened(words[7], "wb")};
    if (job.spatial < 1 || job.spatial > SPATIAL_MAX || job.temporal < 1 || job.temporal > 3)
        fail(words[0], "1 to 3 layers");
    return job;
}

static inline int next_frame(const struct job *job, struct frame *f) {
    return fscanf(job->plan, "%d %d %d %d %d %d", &f->key, &f->spatial, &f->temporal, &f->own, &f->below,
                  &f->store) == 6;
}

static inline void read_plane(const struct job *job, uint8_t *to, int stride, int width, int height) {
    for (int row = 0; row < height; row++)
        if (fread(to + row * stride, 1, width, job->pictures) != (size_t)width)
            fail("pictures", "fewer than are planned");
}

static inline void write_frame(const struct job *job, const void *data, size_t length) {
    const uint8_t head[4] = {length, length >> 8, length >> 16, length >> 24};
    if (fwrite(head, 1, 4, job->out) != 4 || fwrite(data, 1, length, job->out) != length)
        fail("output", "cannot be written");
}

// Of all spatial layers up to this temporal one; temporal layers are the lowest of three.
static inline int layer_rate(int spatial, int temporal, int temporal_layers) {
    return spatial_rates[spatial] * TEMPORAL_PERCENT[temporal] / TEMPORAL_PERCENT[temporal_layers - 1];
}

#endif
