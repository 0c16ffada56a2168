package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media/h264reader"
	"github.com/pion/webrtc/v4/pkg/media/ivfreader"
	"github.com/pion/webrtc/v4/pkg/media/oggreader"
)

// A coded picture.
type picture struct {
	bytes []byte
	key   bool
}

// A coded film that is played over and over.
type film struct {
	codec    webrtc.RTPCodecCapability
	pictures []picture
}

func (f film) payloader() rtp.Payloader {
	if f.codec.MimeType == webrtc.MimeTypeVP8 {
		return &codecs.VP8Payloader{EnablePictureID: true}
	}
	return &codecs.H264Payloader{}
}

// The next key frame from this picture on.
func (f film) key(from int) int {
	for n := range f.pictures {
		if at := (from + n) % len(f.pictures); f.pictures[at].key {
			return at
		}
	}
	return from
}

func readFilm(name string) film {
	content, err := os.ReadFile(name)
	need(err)
	if strings.HasSuffix(name, ".ivf") {
		return readVP8(bytes.NewReader(content))
	}
	return readH264(bytes.NewReader(content))
}

func readVP8(from io.Reader) film {
	film := film{codec: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000}}
	reader, _, err := ivfreader.NewWith(from)
	need(err)
	for {
		frame, _, err := reader.ParseNextFrame()
		if errors.Is(err, io.EOF) {
			return film
		}
		need(err)
		// RFC 6386, section 9.1.
		film.pictures = append(film.pictures, picture{frame, len(frame) > 0 && frame[0]&1 == 0})
	}
}

// Each slice is a picture, with what stands before it.
func readH264(from io.Reader) film {
	film := film{codec: webrtc.RTPCodecCapability{
		MimeType:    webrtc.MimeTypeH264,
		ClockRate:   90000,
		SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
	}}
	reader, err := h264reader.NewReaderWithOptions(from, h264reader.WithIncludeSEI(true))
	need(err)
	var unit []byte
	for {
		nal, err := reader.NextNAL()
		if errors.Is(err, io.EOF) {
			return film
		}
		need(err)
		unit = append(append(unit, 0, 0, 0, 1), nal.Data...)
		kind := nal.UnitType
		if kind == h264reader.NalUnitTypeCodedSliceIdr || kind == h264reader.NalUnitTypeCodedSliceNonIdr {
			film.pictures = append(film.pictures, picture{unit, kind == h264reader.NalUnitTypeCodedSliceIdr})
			unit = nil
		}
	}
}

// Packets of sound, 20 ms each.
func readSound(name string) [][]byte {
	file, err := os.Open(name)
	need(err)
	defer file.Close()
	reader, _, err := oggreader.NewWith(file)
	need(err)
	var packets [][]byte
	for {
		page, _, err := reader.ParseNextPage()
		if errors.Is(err, io.EOF) {
			return packets
		}
		need(err)
		if !bytes.HasPrefix(page, []byte("OpusTags")) {
			packets = append(packets, page)
		}
	}
}
