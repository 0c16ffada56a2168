// A peer of WebRTC over pion (https://github.com/pion/webrtc), for tests: it publishes files by WHIP (RFC 9725), as one
// picture or in several sizes (RFC 8853), and plays by WHEP into a file. What it got it prints as lines of JSON.
//
// Usage: peer publish [-deaf] [-lose N] [-rids A,B] [-sound FILE.ogg] URL FILE…
//
//	peer play [-asks] [-lose N] URL FILE PICTURES
//
// Files are VP8 in IVF (.ivf) or H.264 in Annex B, one slice a picture (.h264).
package main

import (
	"bytes"
	"flag"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"
)

func need(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A connection with these codecs and pion's interceptors that repair and report. A viewer does not tell which packets
// came when, so that it gets all, however busy this machine is. Of the packets that come or go, each `lose`th is lost,
// the first time. The channel is closed once the other end is there.
func connect(media *webrtc.MediaEngine, publishes bool, lose int) (*webrtc.PeerConnection, <-chan struct{}) {
	registry := &interceptor.Registry{}
	if lose > 0 { // Next to the wire, so that it comes first.
		registry.Add(loser(lose))
	}
	need(webrtc.ConfigureNack(media, registry))
	need(webrtc.ConfigureRTCPReports(registry))
	need(webrtc.ConfigureSimulcastExtensionHeaders(media))
	if publishes {
		for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
			media.RegisterFeedback(webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}, kind)
		}
		need(webrtc.ConfigureTWCCHeaderExtensionSender(media, registry))
	}
	settings := webrtc.SettingEngine{}
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	api := webrtc.NewAPI(
		webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings),
	)
	peer, err := api.NewPeerConnection(webrtc.Configuration{})
	need(err)
	connected, once := make(chan struct{}), sync.Once{}
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			once.Do(func() { close(connected) })
		case webrtc.PeerConnectionStateFailed:
			log.Fatal("the connection failed")
		}
	})
	return peer, connected
}

// Posts the offer, takes the answer, and says where the session is.
func negotiate(peer *webrtc.PeerConnection, endpoint string) *url.URL {
	offer, err := peer.CreateOffer(nil)
	need(err)
	gathered := webrtc.GatheringCompletePromise(peer)
	need(peer.SetLocalDescription(offer))
	<-gathered
	response, err := http.Post(endpoint, "application/sdp", strings.NewReader(peer.LocalDescription().SDP))
	need(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	need(err)
	if response.StatusCode != http.StatusCreated {
		log.Fatalf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	need(peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(text)}))
	place, err := response.Location()
	need(err)
	return place
}

// Ends a session as it is to be ended.
func leave(peer *webrtc.PeerConnection, place *url.URL) {
	request, err := http.NewRequest(http.MethodDelete, place.String(), nil)
	need(err)
	response, err := http.DefaultClient.Do(request)
	need(err)
	response.Body.Close()
	if response.StatusCode/100 != 2 {
		log.Fatalf("the session cannot be ended: %s", response.Status)
	}
	need(peer.Close())
}

func main() {
	usage := "usage: peer publish|play [FLAG …] URL FILE …"
	if len(os.Args) < 2 {
		log.Fatal(usage)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	lose := flags.Int("lose", 0, "one packet in this number is lost")
	how := publication{}
	flags.BoolVar(&how.deaf, "deaf", false, "do nothing if a key frame is asked for")
	asks := flags.Bool("asks", false, "ask for a key frame with each second of pictures")
	flags.StringVar(&how.rids, "rids", "", "the files are sizes of one picture, by these names")
	flags.StringVar(&how.sound, "sound", "", "Opus, a packet of 20 ms in each page of Ogg")
	need(flags.Parse(os.Args[2:]))
	given := flags.Args()
	switch {
	case os.Args[1] == "publish" && len(given) >= 2:
		how.run(*lose, given[0], given[1:])
	case os.Args[1] == "play" && len(given) == 3:
		pictures, err := strconv.Atoi(given[2])
		need(err)
		media := &webrtc.MediaEngine{}
		need(media.RegisterDefaultCodecs())
		peer, _ := connect(media, false, *lose)
		play(peer, given[0], given[1], pictures, *asks)
	default:
		log.Fatal(usage)
	}
}
