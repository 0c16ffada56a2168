"""GStreamer's webrtcbin publishes by WHIP (RFC 9725) or plays by WHEP, until it is told to end, or has played enough.

Usage: gstreamer.py publish URL SIZE [CERTIFICATE.pem]
       gstreamer.py play URL PICTURES [CERTIFICATE.pem]

The certificate, with its key, is what the peer shows; without one, webrtcbin makes its own. What was played is printed:
pictures, their size, and buffers of sound.
"""

import hashlib
import re
import signal
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

PUBLISHES = """
    webrtcbin name=peer bundle-policy=max-bundle
    videotestsrc is-live=true pattern=ball ! video/x-raw,width={width},height={height},framerate=25/1
      ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 bitrate=400
      ! video/x-h264,profile=constrained-baseline
      ! rtph264pay config-interval=-1 aggregate-mode=zero-latency
      ! application/x-rtp,media=video,encoding-name=H264,payload=96 ! peer.
    audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! opusenc ! rtpopuspay
      ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97 ! peer.
"""

# What is played.
TAKEN = (
    "application/x-rtp,media=video,encoding-name=H264,payload=96,clock-rate=90000,"
    "packetization-mode=(string)1,profile-level-id=(string)42e01f,rtcp-fb-nack=true,rtcp-fb-nack-pli=true",
    "application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,encoding-params=(string)2",
)

END = "-----END CERTIFICATE-----"
FINGERPRINT = re.compile("a=fingerprint:sha-256 [0-9A-F:]+")


def fingerprint(certificate):
    """That of the certificate alone: webrtcbin 1.22 takes what stands behind it, the key, for a part of it."""
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate[: certificate.index(END) + len(END)]))
    return digest.digest().hex(":").upper()


class Peer:
    def __init__(self, pipeline, url, certificate):
        self.loop, self.url, self.session, self.failure = GLib.MainLoop(), url, None, None
        self.pipeline = Gst.parse_launch(pipeline)
        self.peer = self.pipeline.get_by_name("peer")
        self.certificate = certificate
        self.peer.connect("deep-element-added", self.added)
        self.peer.connect("on-negotiation-needed", self.offers)
        self.peer.connect("notify::ice-gathering-state", self.gathered)
        self.peer.connect("notify::connection-state", self.changed)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", lambda _, message: self.fails(str(message.parse_error())))
        GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGTERM, self.loop.quit)

    def run(self):
        self.pipeline.set_state(Gst.State.PLAYING)
        self.loop.run()
        if self.session:
            self.leaves()
        self.pipeline.set_state(Gst.State.NULL)
        if self.failure:
            sys.exit(self.failure)

    def leaves(self):
        try:
            urllib.request.urlopen(urllib.request.Request(self.session, method="DELETE")).close()
        except urllib.error.HTTPError as error:
            self.failure = self.failure or f"the session is over: {error}"

    def fails(self, why):
        self.failure = self.failure or why
        self.loop.quit()

    def added(self, _peer, _bin, element):
        factory = element.get_factory()
        if self.certificate and factory and factory.get_name() == "dtlsdec":
            element.set_property("pem", self.certificate)

    def offers(self, peer):
        def made(promise):
            reply = promise.get_reply()  # It keeps the offer alive.
            peer.emit("set-local-description", reply.get_value("offer"), None)

        peer.emit("create-offer", None, Gst.Promise.new_with_change_func(made))

    def gathered(self, peer, _):
        if peer.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            GLib.idle_add(self.asks)

    def asks(self):
        offer = self.peer.get_property("local-description").sdp.as_text()
        if self.certificate:
            offer = FINGERPRINT.sub("a=fingerprint:sha-256 " + fingerprint(self.certificate), offer)
        request = urllib.request.Request(self.url, offer.encode(), {"Content-Type": "application/sdp"})
        try:
            with urllib.request.urlopen(request) as response:
                text = response.read().decode()
                self.session = urllib.parse.urljoin(self.url, response.headers["Location"])
        except urllib.error.HTTPError as error:
            self.fails(f"{error}: {error.read().decode()}")
            return
        _, sdp = GstSdp.SDPMessage.new_from_text(text)
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        self.peer.emit("set-remote-description", answer, None)

    def changed(self, peer, _):
        state = peer.get_property("connection-state")
        if state == GstWebRTC.WebRTCPeerConnectionState.FAILED:
            self.fails("the connection failed")


class Viewer(Peer):
    def __init__(self, url, wanted, certificate):
        super().__init__("pipeline. ( webrtcbin name=peer bundle-policy=max-bundle latency=100 )", url, certificate)
        self.wanted, self.pictures, self.sound, self.size = wanted, 0, 0, None
        for caps in TAKEN:
            direction = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
            self.peer.emit("add-transceiver", direction, Gst.Caps.from_string(caps))
        self.peer.connect("pad-added", self.comes)

    def comes(self, _peer, pad):
        is_picture = pad.get_current_caps().get_structure(0).get_string("media") == "video"
        chain = "rtph264depay ! h264parse ! avdec_h264" if is_picture else "rtpopusdepay ! opusdec"
        end = Gst.parse_bin_from_description(
            f"queue ! {chain} ! fakesink name=end sync=false signal-handoffs=true", True
        )
        self.pipeline.add(end)
        end.get_by_name("end").connect("handoff", self.shows if is_picture else self.sounds)
        end.sync_state_with_parent()
        pad.link(end.get_static_pad("sink"))

    def shows(self, _end, _buffer, pad):
        shape = pad.get_current_caps().get_structure(0)
        self.size = "{}x{}".format(shape.get_value("width"), shape.get_value("height"))
        self.pictures += 1
        if self.pictures >= self.wanted and self.sound >= self.wanted:
            self.loop.quit()

    def sounds(self, _end, _buffer, _pad):
        self.sound += 1


def main():
    Gst.init(None)
    what, url, value = sys.argv[1:4]
    certificate = None
    if len(sys.argv) > 4:
        with open(sys.argv[4], encoding="ascii") as file:
            certificate = file.read()
    if what == "publish":
        width, height = value.split("x")
        Peer(PUBLISHES.format(width=width, height=height), url, certificate).run()
        return
    viewer = Viewer(url, int(value), certificate)
    viewer.run()
    print(f'{{"pictures":{viewer.pictures},"sound":{viewer.sound},"size":"{viewer.size}"}}')


main()
