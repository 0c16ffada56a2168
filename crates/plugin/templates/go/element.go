// Package element lets everything pass but frames that nothing else needs.
package element

import "NAME/outflow"

// Element is the element.
type Element struct{}

// Init is told what comes in. What the relay knows of a packet is enough here; a number above 0 asks
// for this many of its bytes, outflow.All for all.
func (*Element) Init(config string, input outflow.Format) (uint32, error) {
	return 0, nil
}

// Work says what becomes of a batch.
func (*Element) Work(packets []outflow.Packet, bytes []byte) outflow.Answer {
	actions := make([]outflow.Action, 0, len(packets))
	for i := range packets {
		if packets[i].Kind != outflow.Bidirectional {
			actions = append(actions, outflow.Action{Packet: uint32(i)})
		}
	}
	return outflow.Answer{Pass: len(actions) == len(packets), Actions: actions}
}
