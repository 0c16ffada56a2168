/* Takes the colour out of PPM images: each pixel has its luma three times, so that the image stays
 * one of the same size. */
#include "outflow_plugin.h"

#include <wasm_simd128.h>

outflow_setup outflow_init(outflow_text config, outflow_format input) {
    (void)config;
    if (input.kind != OUTFLOW_IMAGES) return outflow_refuse("this works on PPM images; put it behind what makes them");
    return (outflow_setup){0, OUTFLOW_SEE_ALL, 0};
}

/* Where the pixels of an image begin; 0 if it is no PPM. */
static uint32_t pixels(const uint8_t *image, uint32_t size) {
    if (size < 2 || image[0] != 'P' || image[1] != '6') return 0;
    uint32_t at = 2;
    for (int number = 0; number < 3; number++) {
        while (at < size && (image[at] <= ' ' || image[at] == '#')) {
            if (image[at] == '#')
                while (at < size && image[at] != '\n') at++;
            else
                at++;
        }
        while (at < size && image[at] >= '0' && image[at] <= '9') at++;
    }
    return at + 1 < size ? at + 1 : 0;
}

/* Bytes of x where n bytes behind a multiple of three are, else those of y. */
#define PICK(x, y, n) wasm_v128_bitselect(x, y, (v128_t)EVERY_THIRD_##n)
#define EVERY_THIRD_0 wasm_i8x16_const(-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1)
#define EVERY_THIRD_1 wasm_i8x16_const(0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0)
#define EVERY_THIRD_2 wasm_i8x16_const(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0)

/* 77 red + 150 green + 29 blue, and a half, in 256ths. */
static inline v128_t weighted(v128_t red, v128_t green, v128_t blue) {
    v128_t sum = wasm_i16x8_add(wasm_i16x8_mul(red, wasm_i16x8_const_splat(77)),
                                wasm_i16x8_mul(green, wasm_i16x8_const_splat(150)));
    return wasm_i16x8_add(sum, wasm_i16x8_add(wasm_i16x8_mul(blue, wasm_i16x8_const_splat(29)),
                                              wasm_i16x8_const_splat(128)));
}

/* Sixteen pixels at once. In 48 bytes, those of a channel never stand in the same place of their
 * vectors, so that they are picked into one without moving; green and blue stand one and two further
 * than red then. In which order the pixels are does not matter before their luma is written. */
static void gray(uint8_t *at, uint32_t bytes) {
    const v128_t low = wasm_i16x8_const_splat(0x00ff), high = wasm_i16x8_const_splat((int16_t)0xff00);
    uint8_t *end = at + bytes;
    for (; end - at >= 48; at += 48) {
        v128_t a = wasm_v128_load(at), b = wasm_v128_load(at + 16), c = wasm_v128_load(at + 32);
        v128_t red = PICK(a, PICK(b, c, 2), 0);
        v128_t green = PICK(a, PICK(c, b, 2), 1);
        v128_t blue = PICK(a, PICK(b, c, 1), 2);
        green = wasm_i8x16_shuffle(green, green, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0);
        blue = wasm_i8x16_shuffle(blue, blue, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1);
        v128_t even = weighted(wasm_v128_and(red, low), wasm_v128_and(green, low), wasm_v128_and(blue, low));
        v128_t odd = weighted(wasm_u16x8_shr(red, 8), wasm_u16x8_shr(green, 8), wasm_u16x8_shr(blue, 8));
        v128_t luma = wasm_v128_or(wasm_u16x8_shr(even, 8), wasm_v128_and(odd, high));
        wasm_v128_store(at, wasm_i8x16_shuffle(luma, luma, 0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9, 12, 12, 12, 15));
        wasm_v128_store(at + 16, wasm_i8x16_shuffle(luma, luma, 15, 15, 2, 2, 2, 5, 5, 5, 8, 8, 8, 11, 11, 11, 14, 14));
        wasm_v128_store(at + 32, wasm_i8x16_shuffle(luma, luma, 14, 1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10, 13, 13, 13));
    }
    for (; end - at >= 3; at += 3) at[0] = at[1] = at[2] = (77 * at[0] + 150 * at[1] + 29 * at[2] + 128) >> 8;
}

outflow_answer outflow_work(const outflow_packet *packets, uint32_t count, uint8_t *bytes, uint32_t byte_count) {
    outflow_action *actions = outflow_alloc(count * sizeof *actions);
    for (uint32_t i = 0; i < count; i++) {
        const outflow_packet *packet = &packets[i];
        uint8_t *image = bytes + packet->offset;
        uint32_t begin = pixels(image, packet->length);
        if (begin) gray(image + begin, packet->length - begin);
        actions[i] = (outflow_action){i, 0, begin != 0, packet->offset, packet->length, packet->size};
    }
    return (outflow_answer){1, actions, count, bytes, byte_count};
}
