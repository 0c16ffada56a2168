// Package thinner lets only some groups of pictures of a video through: every n-th, or the key frames
// alone. Sound and everything else pass.
package thinner

import (
	"errors"
	"strconv"
	"strings"

	"outflow.example/thinner/outflow"
)

// Thinner is the element.
type Thinner struct {
	every  uint64 // one group of so many
	key    bool   // its key frame alone
	tracks []track
}

// What was seen of a track.
type track struct {
	video   bool
	groups  uint64
	seen    bool
	frame   uint32
	through bool // the frame goes through
}

// Init reads "every=N" and "key-frames".
func (t *Thinner) Init(config string, input outflow.Format) (uint32, error) {
	t.every, t.key = 1, false
	for _, word := range strings.Fields(config) {
		number, isEvery := strings.CutPrefix(word, "every=")
		every, err := strconv.ParseUint(number, 10, 32)
		switch {
		case isEvery && err == nil && every > 0:
			t.every = every
		case word == "key-frames":
			t.key = true
		default:
			return 0, errors.New("\"" + word + "\" is neither key-frames nor every=N with a number above 0")
		}
	}
	t.tracks = make([]track, max(1, len(input.Tracks)))
	for i := range t.tracks {
		t.tracks[i].video = input.Kind != outflow.RTP || input.Tracks[i].Video
	}
	if input.Kind == outflow.TS {
		return 0, errors.New("a transport stream has its sound between its pictures; give it RTP")
	}
	// What the relay knows of a packet is enough.
	return 0, nil
}

// Work lets packets of the chosen frames through.
func (t *Thinner) Work(packets []outflow.Packet, _ []byte) outflow.Answer {
	actions := make([]outflow.Action, 0, len(packets))
	for i := range packets {
		if t.passes(&packets[i]) {
			actions = append(actions, outflow.Action{Packet: uint32(i)})
		}
	}
	return outflow.Answer{Pass: len(actions) == len(packets), Actions: actions}
}

func (t *Thinner) passes(packet *outflow.Packet) bool {
	track := &t.tracks[int(packet.Track)%len(t.tracks)]
	if !track.video {
		return true
	}
	isNew := !track.seen || packet.Frame != track.frame
	starts := packet.Marks&outflow.Key != 0 || packet.Kind == outflow.Header || packet.Kind == outflow.Intra
	switch {
	case isNew && starts:
		track.through = track.groups%t.every == 0
		track.groups++
	case isNew && t.key:
		track.through = false
	}
	track.seen, track.frame = true, packet.Frame
	return track.through
}
