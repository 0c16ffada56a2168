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

static inline v128_t luma8(v128_t red, v128_t green, v128_t blue) {
    v128_t sum = wasm_i16x8_add(wasm_i16x8_mul(red, wasm_i16x8_const_splat(77)),
                                wasm_i16x8_mul(green, wasm_i16x8_const_splat(150)));
    sum = wasm_i16x8_add(sum, wasm_i16x8_mul(blue, wasm_i16x8_const_splat(29)));
    return wasm_u16x8_shr(wasm_i16x8_add(sum, wasm_i16x8_const_splat(128)), 8);
}

static void gray(uint8_t *at, uint32_t bytes) {
    uint8_t *end = at + bytes;
    for (; end - at >= 48; at += 48) {
        v128_t a = wasm_v128_load(at), b = wasm_v128_load(at + 16), c = wasm_v128_load(at + 32);
        /* Shuffles of two vectors at a time: first the values of a and b, then those of c. */
        v128_t red = wasm_i8x16_shuffle(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
        red = wasm_i8x16_shuffle(red, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
        v128_t green = wasm_i8x16_shuffle(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);
        green = wasm_i8x16_shuffle(green, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30);
        v128_t blue = wasm_i8x16_shuffle(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
        blue = wasm_i8x16_shuffle(blue, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);
        v128_t low = luma8(wasm_u16x8_extend_low_u8x16(red), wasm_u16x8_extend_low_u8x16(green),
                           wasm_u16x8_extend_low_u8x16(blue));
        v128_t high = luma8(wasm_u16x8_extend_high_u8x16(red), wasm_u16x8_extend_high_u8x16(green),
                            wasm_u16x8_extend_high_u8x16(blue));
        v128_t luma = wasm_u8x16_narrow_i16x8(low, high);
        wasm_v128_store(at, wasm_i8x16_shuffle(luma, luma, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5));
        wasm_v128_store(at + 16, wasm_i8x16_shuffle(luma, luma, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10));
        wasm_v128_store(at + 32, wasm_i8x16_shuffle(luma, luma, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15));
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
