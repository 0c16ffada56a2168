package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// Pictures a second, and how often what was sent is told, in pictures.
const rate, toldEvery = 25, 5

// How something is published.
type publication struct {
	deaf        bool
	rids, sound string
}

// What a publisher has heard, and where it is.
type heard struct {
	// The number of the picture in its film that the first layer has sent last, and how many it sent.
	At   int `json:"at"`
	Sent int `json:"sent"`
	// Messages: key frames asked for, packets asked for, what came of the transport, receivers' reports.
	KeyFrames int `json:"key_frames"`
	Lost      int `json:"lost"`
	Transport int `json:"transport"`
	Reports   int `json:"reports"`
}

// One size of the picture.
type layer struct {
	film
	rid       string
	track     *webrtc.TrackLocalStaticRTP
	packets   rtp.Packetizer
	next      int
	wantsKey  bool
	mid       string
	midNumber uint8
	ridNumber uint8
}

// The film's codec, with repairs (RFC 4588), and that of sound: the first of an offer is taken.
func taken(film webrtc.RTPCodecCapability) *webrtc.MediaEngine {
	media := &webrtc.MediaEngine{}
	repairs := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeRTX, ClockRate: 90000, SDPFmtpLine: "apt=96"}
	register := func(one webrtc.RTPCodecCapability, number webrtc.PayloadType, kind webrtc.RTPCodecType) {
		need(media.RegisterCodec(webrtc.RTPCodecParameters{RTPCodecCapability: one, PayloadType: number}, kind))
	}
	register(film, 96, webrtc.RTPCodecTypeVideo)
	register(repairs, 97, webrtc.RTPCodecTypeVideo)
	register(opus, 111, webrtc.RTPCodecTypeAudio)
	return media
}

var opus = webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}

func (p publication) run(lose int, endpoint string, files []string) {
	rids := make([]string, len(files))
	if p.rids != "" {
		copy(rids, strings.Split(p.rids, ","))
	}
	layers := make([]*layer, len(files))
	for at, file := range files {
		layers[at] = newLayer(readFilm(file), rids[at])
	}
	peer, connected := connect(taken(layers[0].codec), true, lose)
	sender := addLayers(peer, layers)
	listener := &listener{}
	var sound *webrtc.TrackLocalStaticRTP
	if p.sound != "" {
		track, err := webrtc.NewTrackLocalStaticRTP(opus, "sound", "film")
		need(err)
		sender, err := peer.AddTrack(track)
		need(err)
		go listener.listen(sender, &layer{}, true)
		sound = track
	}
	place := negotiate(peer, endpoint)
	<-connected
	for _, one := range layers {
		one.learn(peer, sender)
		go listener.listen(sender, one, p.deaf)
	}
	if sound != nil {
		go sing(sound, readSound(p.sound))
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	tick := time.NewTicker(time.Second / rate)
	for {
		select {
		case <-end:
			leave(peer, place)
			return
		case <-tick.C:
			listener.show(layers)
		}
	}
}

func newLayer(film film, rid string) *layer {
	var options []func(*webrtc.TrackLocalStaticRTP)
	if rid != "" {
		options = append(options, webrtc.WithRTPStreamID(rid))
	}
	track, err := webrtc.NewTrackLocalStaticRTP(film.codec, "picture", "film", options...)
	need(err)
	// The track sets payload type and SSRC.
	packets := rtp.NewPacketizer(1200, 0, 0, film.payloader(), rtp.NewRandomSequencer(), 90000)
	return &layer{film: film, rid: rid, track: track, packets: packets}
}

func addLayers(peer *webrtc.PeerConnection, layers []*layer) *webrtc.RTPSender {
	transceiver, err := peer.AddTransceiverFromTrack(
		layers[0].track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly},
	)
	need(err)
	for _, one := range layers[1:] {
		need(transceiver.Sender().AddEncoding(one.track))
	}
	return transceiver.Sender()
}

// Learns the numbers of the header extensions that say what a packet is of.
func (l *layer) learn(peer *webrtc.PeerConnection, sender *webrtc.RTPSender) {
	for _, one := range sender.GetParameters().HeaderExtensions {
		switch one.URI {
		case sdp.SDESMidURI:
			l.midNumber = uint8(one.ID)
		case sdp.SDESRTPStreamIDURI:
			l.ridNumber = uint8(one.ID)
		}
	}
	for _, one := range peer.GetTransceivers() {
		if one.Sender() == sender {
			l.mid = one.Mid()
		}
	}
}

// Sends the next picture; its number.
func (l *layer) show() int {
	if l.wantsKey {
		l.next, l.wantsKey = l.key(l.next), false
	}
	at := l.next
	l.next = (at + 1) % len(l.pictures)
	for _, packet := range l.packets.Packetize(l.pictures[at].bytes, 90000/rate) {
		if l.midNumber != 0 {
			need(packet.Header.SetExtension(l.midNumber, []byte(l.mid)))
		}
		if l.rid != "" && l.ridNumber != 0 {
			need(packet.Header.SetExtension(l.ridNumber, []byte(l.rid)))
		}
		need(l.track.WriteRTP(packet))
	}
	return at
}

// What all layers have heard.
type listener struct {
	heard
	lock sync.Mutex
}

func (l *listener) show(layers []*layer) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for number, one := range layers {
		if at := one.show(); number == 0 {
			l.At = at
		}
	}
	l.Sent++
	if l.Sent%toldEvery == 0 {
		need(json.NewEncoder(os.Stdout).Encode(l.heard))
	}
}

func (l *listener) listen(sender *webrtc.RTPSender, of *layer, deaf bool) {
	for {
		var messages []rtcp.Packet
		var err error
		if of.rid == "" {
			messages, _, err = sender.ReadRTCP()
		} else {
			messages, _, err = sender.ReadSimulcastRTCP(of.rid)
		}
		if err != nil {
			return
		}
		l.lock.Lock()
		for _, message := range messages {
			l.hear(message, of, deaf)
		}
		l.lock.Unlock()
	}
}

func (l *listener) hear(message rtcp.Packet, of *layer, deaf bool) {
	switch message := message.(type) {
	case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
		l.KeyFrames++
		of.wantsKey = !deaf
	case *rtcp.TransportLayerNack:
		for _, pair := range message.Nacks {
			l.Lost += len(pair.PacketList())
		}
	case *rtcp.TransportLayerCC:
		l.Transport++
	case *rtcp.ReceiverReport:
		l.Reports += len(message.Reports)
	}
}

// Sends sound over and over.
func sing(track *webrtc.TrackLocalStaticRTP, sound [][]byte) {
	packets := rtp.NewPacketizer(1200, 0, 0, &codecs.OpusPayloader{}, rtp.NewRandomSequencer(), 48000)
	tick := time.NewTicker(20 * time.Millisecond)
	for at := 0; ; at++ {
		<-tick.C
		for _, packet := range packets.Packetize(sound[at%len(sound)], 960) {
			if track.WriteRTP(packet) != nil {
				return
			}
		}
	}
}
