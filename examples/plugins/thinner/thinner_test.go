package thinner

import (
	"testing"

	"outflow.example/thinner/outflow"
)

var input = outflow.Format{Kind: outflow.RTP, Tracks: []outflow.Track{{Video: true}, {}}}

// Three groups of three frames, with a packet of sound behind each.
func packets() []outflow.Packet {
	var all []outflow.Packet
	for frame := uint32(0); frame < 9; frame++ {
		packet := outflow.Packet{Frame: frame, Kind: outflow.Predicted}
		if frame%3 == 0 {
			packet.Kind, packet.Marks = outflow.Intra, outflow.Key
		}
		all = append(all, packet, outflow.Packet{Track: 1, Frame: frame, Kind: outflow.Data})
	}
	return all
}

func through(t *testing.T, config string) []uint32 {
	thinner := &Thinner{}
	if _, err := thinner.Init(config, input); err != nil {
		t.Fatal(err)
	}
	all := packets()
	answer := thinner.Work(all, nil)
	var frames []uint32
	for _, action := range answer.Actions {
		if all[action.Packet].Track == 0 {
			frames = append(frames, all[action.Packet].Frame)
		}
	}
	if sound := len(answer.Actions) - len(frames); sound != 9 {
		t.Errorf("%d packets of sound of 9", sound)
	}
	return frames
}

func TestGroups(t *testing.T) {
	for config, want := range map[string][]uint32{
		"every=2":            {0, 1, 2, 6, 7, 8},
		"key-frames":         {0, 3, 6},
		"key-frames every=3": {0},
	} {
		got := through(t, config)
		if len(got) != len(want) {
			t.Fatalf("%s: %v, not %v", config, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: %v, not %v", config, got, want)
			}
		}
	}
	if _, err := (&Thinner{}).Init("every=0", input); err == nil {
		t.Error("every=0 was taken")
	}
}
