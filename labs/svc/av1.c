// Encodes the layers of a plan by libaom (see svc.h).

#include <aom/aom_encoder.h>
#include <aom/aomcx.h>

#include "svc.h"

#define REFERENCES 7

static aom_codec_ctx_t codec;

static void set(int control, int value) {
    if (aom_codec_control(&codec, control, value)) fail("control", aom_codec_error_detail(&codec));
}

static void set_layers(const struct job *job) {
    aom_svc_params_t layers = {.number_spatial_layers = job->spatial, .number_temporal_layers = job->temporal};
    for (int s = 0; s < job->spatial; s++) {
        layers.scaling_factor_num[s] = 1;
        layers.scaling_factor_den[s] = 1 << (job->spatial - 1 - s);
        for (int t = 0; t < job->temporal; t++) {
            int layer = s * job->temporal + t;
            layers.min_quantizers[layer] = 4;
            layers.max_quantizers[layer] = 56;
            layers.layer_target_bitrate[layer] = layer_rate(s, t, job->temporal);
        }
    }
    for (int t = 0; t < job->temporal; t++) layers.framerate_factor[t] = 1 << (job->temporal - 1 - t);
    if (aom_codec_control(&codec, AV1E_SET_SVC_PARAMS, &layers)) fail("layers", aom_codec_error_detail(&codec));
}

static void begin(const struct job *job) {
    aom_codec_enc_cfg_t cfg;
    aom_codec_iface_t *iface = aom_codec_av1_cx();
    if (aom_codec_enc_config_default(iface, &cfg, AOM_USAGE_REALTIME)) fail("configuration", NULL);
    cfg.g_w = job->width;
    cfg.g_h = job->height;
    cfg.g_timebase = (struct aom_rational){1, RATE};
    cfg.g_lag_in_frames = 0;
    cfg.g_threads = 1;
    cfg.rc_end_usage = AOM_CBR;
    cfg.rc_dropframe_thresh = 0;
    cfg.rc_target_bitrate = 0;
    for (int s = 0; s < job->spatial; s++) cfg.rc_target_bitrate += spatial_rates[s];
    cfg.kf_mode = AOM_KF_DISABLED;
    if (aom_codec_enc_init(&codec, iface, &cfg, 0)) fail("encoder", aom_codec_error_detail(&codec));
    set(AOME_SET_CPUUSED, 10);
    set(AV1E_SET_AQ_MODE, 3);
    set(AV1E_SET_ENABLE_ORDER_HINT, 0);
    set(AV1E_SET_ENABLE_GLOBAL_MOTION, 0);
    set(AV1E_SET_ENABLE_WARPED_MOTION, 0);
    set(AV1E_SET_ENABLE_OBMC, 0);
    set_layers(job);
}

// A header names seven references, used or not, and decoders refuse those that cannot be scaled: all that are not
// used are one that is. libaom stores a frame only in slots that are named.
static void set_references(const struct frame *f) {
    aom_svc_ref_frame_config_t config = {0};
    int any = f->own >= 0 ? f->own : f->below >= 0 ? f->below : 0;
    for (int r = 0; r < REFERENCES; r++) config.ref_idx[r] = any;
    config.reference[0] = f->own >= 0;
    if (f->below >= 0) {
        config.ref_idx[3] = f->below;
        config.reference[3] = 1;
    }
    if (f->store >= 0) {
        config.ref_idx[6] = f->store;
        config.refresh[f->store] = 1;
    }
    aom_svc_layer_id_t layer = {f->spatial, f->temporal};
    if (aom_codec_control(&codec, AV1E_SET_SVC_LAYER_ID, &layer) ||
        aom_codec_control(&codec, AV1E_SET_SVC_REF_FRAME_CONFIG, &config))
        fail("references", aom_codec_error_detail(&codec));
}

static void encode(const struct job *job, const struct frame *f, aom_image_t *image, int picture) {
    set_references(f);
    aom_enc_frame_flags_t flags = f->key && f->spatial == 0 ? AOM_EFLAG_FORCE_KF : 0;
    // Else the header says "as large as what was in the slot", which a decoder that begins here did not get.
    if (!f->key && f->own < 0) flags = AOM_EFLAG_ERROR_RESILIENT;
    if (aom_codec_encode(&codec, image, picture, 1, flags)) fail("frame", aom_codec_error_detail(&codec));
    aom_codec_iter_t at = NULL;
    const aom_codec_cx_pkt_t *packet;
    int frames = 0;
    while ((packet = aom_codec_get_cx_data(&codec, &at))) {
        if (packet->kind != AOM_CODEC_CX_FRAME_PKT) continue;
        write_frame(job, packet->data.frame.buf, packet->data.frame.sz);
        frames++;
    }
    if (frames != 1) fail("frame", "not one came of it");
}

int main(int count, char **words) {
    struct job job = job_of(count, words);
    struct frame f;
    aom_image_t *image = aom_img_alloc(NULL, AOM_IMG_FMT_I420, job.width, job.height, 1);
    int picture = -1;
    begin(&job);
    while (next_frame(&job, &f)) {
        if (f.spatial == 0) {
            picture++;
            for (int p = 0; p < 3; p++)
                read_plane(&job, image->planes[p], image->stride[p], p ? job.width / 2 : job.width,
                           p ? job.height / 2 : job.height);
        }
        encode(&job, &f, image, picture);
    }
    if (fclose(job.out)) fail("output", "cannot be written");
    return 0;
}
