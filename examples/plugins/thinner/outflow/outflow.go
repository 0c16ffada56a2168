// Package outflow is the contract of elements (outflow:plugin@1.0.0, wit/plugin.wit) for Go, without
// any other package: the records lie in memory as the component model's canonical ABI has them.
//
// An element calls Register in an init function. What it is given in a call is its own until the call
// is over.
package outflow

import "unsafe"

// What packets are.
const (
	TS = iota
	RTP
	Images
)

// Kinds of frames.
const (
	Header = iota
	Intra
	Predicted
	Bidirectional
	Enhancement
	Data
)

// Marks of packets.
const (
	First = 1 << iota
	Last
	Key
)

// All is the number of bytes to see for those that want to see all.
const All = ^uint32(0)

// Parts is added to the number of bytes to see by those that want to see all, this many at a time.
const Parts = 1 << 31

// Track is one RTP media of a stream.
type Track struct {
	Codec, Encoding, Fmtp string
	ClockRate             uint32
	Channels              uint8
	Video                 bool
}

// Format says what comes in.
type Format struct {
	Kind   int // TS, RTP or Images
	Tracks []Track
}

// Packet is a packet, as the relay knows it.
type Packet struct {
	Arrived        uint64 // nanoseconds
	Offset, Length uint32 // of its bytes in the batch's; of a part in the packet
	Size           uint32 // all its bytes
	Frame          uint32
	Track          uint8
	Kind           uint8
	Layer          uint8
	Marks          uint8
	Needs          uint32
}

// Action says that a packet goes on.
type Action struct {
	Packet uint32
	Port   uint8
	Edited bool // what follows counts only then
	Offset uint32
	Length uint32
	After  uint32
}

// Answer says what becomes of a batch: everything passes, or only what actions say.
type Answer struct {
	Pass    bool
	Actions []Action
	Bytes   []byte
}

// Element is what an element does.
type Element interface {
	// Init is told what comes in, and says how many bytes of each packet it wants to see.
	Init(config string, input Format) (see uint32, err error)
	// Work works on a batch.
	Work(packets []Packet, bytes []byte) Answer
}

// Write puts these bytes in the place of as many at the beginning of the part that is worked on; the
// next part begins behind them.
func Write(bytes []byte) { hostWrite(unsafe.Pointer(unsafe.SliceData(bytes)), uint32(len(bytes))) }

var element Element

// Register says which element this is.
func Register(which Element) { element = which }

// What is given in a call stays until it is over.
var given [][]uint64

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldBytes, align, bytes uint32) unsafe.Pointer {
	block := make([]uint64, bytes/8+1)
	given = append(given, block)
	at := unsafe.Pointer(&block[0])
	if oldBytes > 0 {
		copy(unsafe.Slice((*byte)(at), bytes), unsafe.Slice((*byte)(old), oldBytes))
	}
	return at
}

var setup [3]uint32
var answer [5]uint32
var kept Answer
var actions []uint32
var why []byte

func address(at unsafe.Pointer) uint32 { return uint32(uintptr(at)) }

func text(at unsafe.Pointer, index uintptr) string {
	words := unsafe.Slice((*uint32)(at), index+2)
	if words[index+1] == 0 {
		return ""
	}
	begin := *(*unsafe.Pointer)(unsafe.Add(at, 4*index))
	return string(unsafe.Slice((*byte)(begin), words[index+1]))
}

//go:wasmexport outflow:plugin/element@1.0.0#init
func initialize(config unsafe.Pointer, length, kind uint32, tracks unsafe.Pointer, count uint32) unsafe.Pointer {
	format := Format{Kind: int(kind)}
	for i := uint32(0); kind == RTP && i < count; i++ {
		at := unsafe.Add(tracks, 32*i)
		format.Tracks = append(format.Tracks, Track{
			Codec:     text(at, 0),
			Encoding:  text(at, 2),
			Fmtp:      text(at, 4),
			ClockRate: *(*uint32)(unsafe.Add(at, 24)),
			Channels:  *(*uint8)(unsafe.Add(at, 28)),
			Video:     *(*uint8)(unsafe.Add(at, 29)) != 0,
		})
	}
	see, err := element.Init(string(unsafe.Slice((*byte)(config), length)), format)
	switch {
	case err != nil:
		why = append([]byte(err.Error()), 0)
		setup = [3]uint32{1, address(unsafe.Pointer(&why[0])), uint32(len(why) - 1)}
	case see == 0:
		setup = [3]uint32{}
	case see == All:
		setup = [3]uint32{0, 2}
	case see >= Parts:
		setup = [3]uint32{0, 3, see - Parts}
	default:
		setup = [3]uint32{0, 1, see}
	}
	clear(given)
	given = given[:0]
	return unsafe.Pointer(&setup)
}

//go:wasmexport outflow:plugin/element@1.0.0#work
func work(packets unsafe.Pointer, count uint32, bytes unsafe.Pointer, length uint32) unsafe.Pointer {
	kept = element.Work(unsafe.Slice((*Packet)(packets), count), unsafe.Slice((*byte)(bytes), length))
	if kept.Pass {
		answer = [5]uint32{}
		return unsafe.Pointer(&answer)
	}
	actions = actions[:0]
	for _, action := range kept.Actions {
		edited := uint32(0)
		if action.Edited {
			edited = 1
		}
		actions = append(actions, action.Packet, uint32(action.Port), edited,
			action.Offset, action.Length, action.After)
	}
	answer = [5]uint32{1,
		address(unsafe.Pointer(unsafe.SliceData(actions))), uint32(len(kept.Actions)),
		address(unsafe.Pointer(unsafe.SliceData(kept.Bytes))), uint32(len(kept.Bytes))}
	return unsafe.Pointer(&answer)
}

//go:wasmexport cabi_post_outflow:plugin/element@1.0.0#work
func afterWork(unsafe.Pointer) {
	clear(given)
	given = given[:0]
	kept = Answer{}
}
