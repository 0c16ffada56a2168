// Encodes the layers of a plan by libvpx (see svc.h).

#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

#include "svc.h"

static vpx_codec_ctx_t codec;
static struct job job;
static int frames;

static void set(int control, int value) {
    if (vpx_codec_control_(&codec, control, value)) fail("control", vpx_codec_error_detail(&codec));
}

static void set_pointer(const char *what, int control, void *value) {
    if (vpx_codec_control_(&codec, control, value)) fail(what, vpx_codec_error_detail(&codec));
}

// Each layer frame by itself; without this, those of a picture come as one superframe.
static void take(vpx_codec_cx_pkt_t *packet, void *nothing) {
    (void)nothing;
    if (packet->kind != VPX_CODEC_CX_FRAME_PKT) return;
    write_frame(&job, packet->data.frame.buf, packet->data.frame.sz);
    frames++;
}

static void begin(void) {
    vpx_codec_enc_cfg_t cfg;
    vpx_codec_iface_t *iface = vpx_codec_vp9_cx();
    vpx_svc_extra_cfg_t layers = {0};
    if (vpx_codec_enc_config_default(iface, &cfg, 0)) fail("configuration", NULL);
    cfg.g_w = job.width;
    cfg.g_h = job.height;
    cfg.g_timebase = (struct vpx_rational){1, RATE};
    cfg.g_pass = VPX_RC_ONE_PASS;
    cfg.g_lag_in_frames = 0;
    cfg.g_threads = 1;
    // Else frames would depend on the vectors of whichever frame is decoded before them.
    cfg.g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
    cfg.rc_end_usage = VPX_CBR;
    cfg.rc_min_quantizer = 4;
    cfg.rc_max_quantizer = 56;
    cfg.rc_dropframe_thresh = 0;
    cfg.rc_target_bitrate = 0;
    cfg.kf_mode = VPX_KF_DISABLED;
    cfg.ss_number_layers = job.spatial;
    cfg.ts_number_layers = job.temporal;
    cfg.temporal_layering_mode = VP9E_TEMPORAL_LAYERING_MODE_BYPASS;
    for (int s = 0; s < job.spatial; s++) {
        cfg.rc_target_bitrate += cfg.ss_target_bitrate[s] = spatial_rates[s];
        layers.scaling_factor_num[s] = 1;
        layers.scaling_factor_den[s] = 1 << (job.spatial - 1 - s);
        for (int t = 0; t < job.temporal; t++) {
            int layer = s * job.temporal + t;
            layers.min_quantizers[layer] = 4;
            layers.max_quantizers[layer] = 56;
            cfg.layer_target_bitrate[layer] = layer_rate(s, t, job.temporal);
        }
    }
    for (int t = 0; t < job.temporal; t++) cfg.ts_rate_decimator[t] = 1 << (job.temporal - 1 - t);
    if (vpx_codec_enc_init(&codec, iface, &cfg, 0)) fail("encoder", vpx_codec_error_detail(&codec));
    vpx_codec_priv_output_cx_pkt_cb_pair_t to = {take, NULL};
    set_pointer("callback", VP9E_REGISTER_CX_CALLBACK, &to);
    set(VP8E_SET_CPUUSED, 8);
    set(VP9E_SET_SVC, 1);
    set_pointer("layers", VP9E_SET_SVC_PARAMETERS, &layers);
    set(VP9E_SET_AQ_MODE, 3);
}

// All frames of a picture. Of the three references that a header names, those not used are one that is.
static void set_references(const struct frame *of) {
    vpx_svc_ref_frame_config_t config = {0};
    vpx_svc_layer_id_t layer = {.spatial_layer_id = 0, .temporal_layer_id = of->temporal};
    for (int s = 0; s < job.spatial; s++) {
        const struct frame *f = of + s;
        int any = f->own >= 0 ? f->own : f->below >= 0 ? f->below : 0;
        config.lst_fb_idx[s] = config.alt_fb_idx[s] = any;
        config.gld_fb_idx[s] = f->below >= 0 ? f->below : any;
        config.reference_last[s] = f->own >= 0;
        config.reference_golden[s] = f->below >= 0;
        config.update_buffer_slot[s] = f->store >= 0 ? 1 << f->store : 0;
        layer.temporal_layer_id_per_spatial[s] = f->temporal;
    }
    set_pointer("layer", VP9E_SET_SVC_LAYER_ID, &layer);
    set_pointer("references", VP9E_SET_SVC_REF_FRAME_CONFIG, &config);
}

int main(int count, char **words) {
    job = job_of(count, words);
    struct frame of[SPATIAL_MAX];
    vpx_image_t *image = vpx_img_alloc(NULL, VPX_IMG_FMT_I420, job.width, job.height, 1);
    begin();
    for (int picture = 0;; picture++) {
        int layers = 0;
        while (layers < job.spatial && next_frame(&job, &of[layers])) layers++;
        if (layers < job.spatial) break;
        for (int p = 0; p < 3; p++)
            read_plane(&job, image->planes[p], image->stride[p], p ? job.width / 2 : job.width,
                       p ? job.height / 2 : job.height);
        set_references(of);
        frames = 0;
        if (vpx_codec_encode(&codec, image, picture, 1, of->key ? VPX_EFLAG_FORCE_KF : 0, VPX_DL_REALTIME))
            fail("frame", vpx_codec_error_detail(&codec));
        if (frames != job.spatial) fail("picture", "not one frame of each layer came of it");
    }
    if (fclose(job.out)) fail("output", "cannot be written");
    return 0;
}
