package main

import (
	"sync"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
)

// Loses one packet in this number, each once: what is sent again comes through.
type loser int

// The first packets of a stream come through: what a viewer gets at once when it joins.
const unharmed = 100

func (every loser) NewInterceptor(string) (interceptor.Interceptor, error) {
	return &losing{every: int(every)}, nil
}

type losing struct {
	interceptor.NoOp
	every int
}

// Whether a packet of a stream is lost; asked for each.
func (l *losing) fate() func(sequence uint16) bool {
	lost, count, lock := map[uint16]bool{}, 0, sync.Mutex{}
	return func(sequence uint16) bool {
		lock.Lock()
		defer lock.Unlock()
		count++
		if count <= unharmed || int(sequence)%l.every != 0 || lost[sequence] {
			return false
		}
		lost[sequence] = true
		return true
	}
}

func (l *losing) BindLocalStream(info *interceptor.StreamInfo, to interceptor.RTPWriter) interceptor.RTPWriter {
	isLost := l.fate()
	return interceptor.RTPWriterFunc(
		func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
			if header.SSRC == info.SSRC && isLost(header.SequenceNumber) {
				return len(payload), nil
			}
			return to.Write(header, payload, attributes)
		},
	)
}

func (l *losing) BindRemoteStream(_ *interceptor.StreamInfo, from interceptor.RTPReader) interceptor.RTPReader {
	isLost := l.fate()
	return interceptor.RTPReaderFunc(
		func(room []byte, attributes interceptor.Attributes) (int, interceptor.Attributes, error) {
			for {
				length, read, err := from.Read(room, attributes)
				header := rtp.Header{}
				if err != nil {
					return length, read, err
				}
				if _, err = header.Unmarshal(room[:length]); err != nil || !isLost(header.SequenceNumber) {
					return length, read, nil
				}
			}
		},
	)
}
