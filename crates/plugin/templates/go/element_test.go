package element

import (
	"testing"

	"NAME/outflow"
)

func TestFramesThatNothingNeedsAreDropped(t *testing.T) {
	packets := []outflow.Packet{{Kind: outflow.Intra}, {Kind: outflow.Bidirectional}, {Kind: outflow.Predicted}}
	answer := (&Element{}).Work(packets, nil)
	if len(answer.Actions) != 2 || answer.Actions[0].Packet != 0 || answer.Actions[1].Packet != 2 {
		t.Errorf("%v", answer)
	}
	if !(&Element{}).Work(packets[:1], nil).Pass {
		t.Error("a frame that is needed did not pass")
	}
}
