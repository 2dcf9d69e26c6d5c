// Command pause holds a pod's namespaces and reaps its orphans.
//
// Called as "pause resolve NAME" it instead waits until DNS answers for NAME,
// which is how a new cluster is known to be usable from inside a pod.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	lookupTimeout = 500 * time.Millisecond
	lookupPeriod  = 100 * time.Millisecond
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "resolve" {
		resolve(os.Args[2])
		return
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != nil || pid <= 0 {
				break
			}
		}
	}
}

func resolve(name string) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		addresses, err := net.DefaultResolver.LookupHost(ctx, name)
		cancel()
		if err == nil {
			fmt.Println(name, addresses)
			return
		}
		fmt.Println(err)
		time.Sleep(lookupPeriod)
	}
}
