// Command coredns is CoreDNS with only the plugins that the cluster's Corefile names.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// Order is the order of the chain: a request passes the plugins from first to last.
	dnsserver.Directives = []string{"health", "ready", "errors", "cache", "kubernetes"}
	coremain.Run()
}
