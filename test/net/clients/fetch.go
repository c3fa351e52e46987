// SPDX-License-Identifier: Apache-2.0

// Fetches an address with Go's own client.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	client := http.Client{Timeout: 10 * time.Second}
	reply, err := client.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer reply.Body.Close()
	io.Copy(os.Stdout, reply.Body)
	if reply.StatusCode != 200 {
		os.Exit(1)
	}
}
