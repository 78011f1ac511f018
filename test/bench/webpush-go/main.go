// The usual way in Go: webpush-go with 100 workers. The library encrypts and signs each push, over
// one kept-alive client. Reads {subscriptions, vapid, payload} from standard input, warms up on the
// first 3,000, prints seconds and CPU seconds as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"
)

const workers = 100
const warmUp = 3000

type order struct {
	Subscriptions []webpush.Subscription `json:"subscriptions"`
	Vapid         struct {
		PublicKey  string `json:"publicKey"`
		PrivateKey string `json:"privateKey"`
	} `json:"vapid"`
	Payload string `json:"payload"`
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func send(client *http.Client, given order, subscriptions []webpush.Subscription) {
	queue := make(chan *webpush.Subscription)
	var wait sync.WaitGroup
	for range workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for subscription := range queue {
				response, err := webpush.SendNotification([]byte(given.Payload), subscription, &webpush.Options{
					HTTPClient:      client,
					Subscriber:      "bench@example.com",
					VAPIDPublicKey:  given.Vapid.PublicKey,
					VAPIDPrivateKey: given.Vapid.PrivateKey,
					TTL:             60,
				})
				if err != nil {
					log.Fatal(err)
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if response.StatusCode != http.StatusCreated {
					log.Fatal(response.Status)
				}
			}
		}()
	}
	for i := range subscriptions {
		queue <- &subscriptions[i]
	}
	close(queue)
	wait.Wait()
}

func main() {
	var given order
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers}
	client := &http.Client{Transport: transport}
	send(client, given, given.Subscriptions[:min(warmUp, len(given.Subscriptions))])
	cpu, start := cpuSeconds(), time.Now()
	send(client, given, given.Subscriptions)
	fmt.Printf("{\"seconds\":%f,\"cpuSeconds\":%f}\n", time.Since(start).Seconds(), cpuSeconds()-cpu)
}
