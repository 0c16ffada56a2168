// What Outflow is compared with: a relay over pion (https://github.com/pion/webrtc), as one would write it first. It
// takes RTP of H.264 at a UDP port and serves offers of WHEP; all viewers come to one UDP port, and pion's usual
// interceptors (repairs by NACK, reports) are in place.
//
// Usage: pion RTP HTTP UDP, each an address with a port.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"
)

func need(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Listens with as much room as the other relays give themselves.
func listen(address string) *net.UDPConn {
	at, err := net.ResolveUDPAddr("udp4", address)
	need(err)
	socket, err := net.ListenUDP("udp4", at)
	need(err)
	raw, err := socket.SyscallConn()
	need(err)
	need(raw.Control(func(fd uintptr) {
		need(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, 8<<20))
	}))
	return socket
}

// Everything at one port, without names by multicast, and without many questions to silent viewers.
func newAPI(address string) *webrtc.API {
	settings := webrtc.SettingEngine{}
	settings.SetICEUDPMux(webrtc.NewICEUDPMux(nil, listen(address)))
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetICETimeouts(time.Minute, 2*time.Minute, 20*time.Second)
	need(settings.SetAnsweringDTLSRole(webrtc.DTLSRoleServer))
	return webrtc.NewAPI(webrtc.WithSettingEngine(settings))
}

// Answers an offer; the track is sent once the viewer has come.
func answer(api *webrtc.API, own webrtc.Certificate, track webrtc.TrackLocal, offer string) (string, error) {
	peer, err := api.NewPeerConnection(webrtc.Configuration{Certificates: []webrtc.Certificate{own}})
	if err != nil {
		return "", err
	}
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateFailed {
			_ = peer.Close()
		}
	})
	sender, err := peer.AddTrack(track)
	if err != nil {
		return "", err
	}
	go func() { // What viewers report goes through the interceptors as it is read.
		report := make([]byte, 1500)
		for err := error(nil); err == nil; {
			_, _, err = sender.Read(report)
		}
	}()
	if err = peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", err
	}
	description, err := peer.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err = peer.SetLocalDescription(description); err != nil {
		return "", err
	}
	<-gathered
	return peer.LocalDescription().SDP, nil
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: pion RTP HTTP UDP")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	need(err)
	own, err := webrtc.GenerateCertificate(key)
	need(err)
	codec := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeH264, ClockRate: 90000}
	track, err := webrtc.NewTrackLocalStaticRTP(codec, "video", "live")
	need(err)
	source, api := listen(os.Args[1]), newAPI(os.Args[3])
	http.HandleFunc("POST /play/live", func(w http.ResponseWriter, r *http.Request) {
		offer, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
		text := ""
		if err == nil {
			text, err = answer(api, *own, track, string(offer))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/sdp")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, text)
	})
	go func() { need(http.ListenAndServe(os.Args[2], nil)) }()
	packet := make([]byte, 1500)
	for {
		length, _, err := source.ReadFromUDPAddrPort(packet)
		need(err)
		if _, err = track.Write(packet[:length]); err != nil {
			log.Print(err)
		}
	}
}
