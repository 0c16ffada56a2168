package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"
	"sync/atomic"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/h264writer"
	"github.com/pion/webrtc/v4/pkg/media/ivfwriter"
)

// How many packets that came later wait for one that lacks, and how many at first: where a publisher has lost
// the first of a key frame, it stands behind others.
const heldMax, heldFirst = 500, 16

// What a viewer got.
type got struct {
	Codec    string `json:"codec"`
	Pictures int    `json:"pictures"`
	Packets  int    `json:"packets"`
	// Never came; came by repair (RFC 4588).
	Lost     int `json:"lost"`
	Repaired int `json:"repaired"`
	// Packets of sound.
	Sound int64 `json:"sound"`
}

// Plays this number of pictures into a file.
func play(peer *webrtc.PeerConnection, endpoint, file string, pictures int, asks bool) {
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		direction := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
		_, err := peer.AddTransceiverFromKind(kind, direction)
		need(err)
	}
	sound, done := atomic.Int64{}, make(chan got)
	peer.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		if track.Kind() == webrtc.RTPCodecTypeVideo {
			done <- watch(track, file, pictures, func() {
				if asks {
					loss := &rtcp.PictureLossIndication{MediaSSRC: uint32(track.SSRC())}
					need(peer.WriteRTCP([]rtcp.Packet{loss}))
				}
			})
			return
		}
		for {
			if _, _, err := track.ReadRTP(); err != nil {
				return
			}
			sound.Add(1)
		}
	})
	place := negotiate(peer, endpoint)
	got := <-done
	got.Sound = sound.Load()
	leave(peer, place)
	need(json.NewEncoder(os.Stdout).Encode(got))
}

func writer(codec, file string) media.Writer {
	if strings.EqualFold(codec, webrtc.MimeTypeH264) {
		to, err := h264writer.New(file)
		need(err)
		return to
	}
	to, err := ivfwriter.New(file, ivfwriter.WithCodec(codec))
	need(err)
	return to
}

// Each second of pictures is told.
func watch(track *webrtc.TrackRemote, file string, pictures int, tell func()) got {
	got := got{Codec: track.Codec().MimeType}
	to, order := writer(got.Codec, file), order{held: map[uint16]*rtp.Packet{}}
	for got.Pictures < pictures {
		packet, attributes, err := track.ReadRTP()
		if err != nil {
			log.Fatalf("it ended after %d pictures: %v", got.Pictures, err)
		}
		got.Packets++
		if attributes.Get(webrtc.AttributeRtxSsrc) != nil {
			got.Repaired++
		}
		order.take(packet, &got.Lost, func(packet *rtp.Packet) {
			if got.Pictures == pictures {
				return
			}
			need(to.WriteRTP(packet))
			if packet.Marker {
				got.Pictures++
				if got.Pictures%rate == 0 {
					tell()
				}
			}
		})
	}
	need(to.Close())
	return got
}

// Packets are handed out in their order.
type order struct {
	next    uint16
	started bool
	held    map[uint16]*rtp.Packet
}

func (o *order) take(packet *rtp.Packet, lost *int, give func(*rtp.Packet)) {
	number := packet.SequenceNumber
	isBefore := number-o.next >= 1<<15
	if !o.started && (isBefore || len(o.held) == 0) {
		o.next = number
	} else if isBefore {
		return // It is late, or there already.
	}
	o.held[number] = packet
	o.started = o.started || len(o.held) >= heldFirst
	for o.started && len(o.held) > 0 {
		one := o.held[o.next]
		switch {
		case one != nil:
			delete(o.held, o.next)
			give(one)
		case len(o.held) < heldMax:
			return
		default:
			*lost++
		}
		o.next++
	}
}
