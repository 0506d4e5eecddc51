// A worker in Go, without packages: does tasks, one at a time.
//
//	HUB=http://127.0.0.1:19104 SECRET=$(cat luxhub-data/secret) go run worker.go worker-1
//
// Write what it does into work. A worker that is killed takes its task up again at its next start.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

type fields map[string]any

// work does a task; an error is a failed attempt.
func work(task fields) (output any, err error) {
	if strings.Contains(task["title"].(string), "fails") {
		return nil, fmt.Errorf("cannot do %s", task["title"])
	}
	return fields{"words": len(strings.Fields(task["description"].(string)))}, nil
}

// hub repeats a request until the hub has answered; an error is a refusal, which a repeat would not change.
func hub(path string, body fields) (fields, error) {
	body["node_id"] = os.Args[1]
	sent, _ := json.Marshal(body)
	for ; ; time.Sleep(time.Second) {
		request, _ := http.NewRequest("POST", os.Getenv("HUB")+"/api/v1/"+path, bytes.NewReader(sent))
		request.Header.Set("X-Matrix-Secret", os.Getenv("SECRET"))
		response, err := (&http.Client{Timeout: time.Minute}).Do(request)
		if err != nil || response.StatusCode >= 500 || response.StatusCode == 408 || response.StatusCode == 429 {
			continue // the hub or the network is away
		}
		got, answer := fields{}, []byte{}
		if answer, err = io.ReadAll(response.Body); err != nil || json.Unmarshal(answer, &got) != nil {
			continue
		}
		if response.StatusCode != 200 {
			return nil, fmt.Errorf("%s: %s", path, answer)
		}
		return got, nil
	}
}

// keep holds a task: the hub takes it from a worker that is silent. It ends with the task.
func keep(held fields, ended chan bool) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(30 * time.Second):
			hub("node/heartbeat", fields{})
			hub("task/extend", fields{"task_id": held["task_id"], "epoch": held["epoch"]})
		}
	}
}

func main() {
	_, err := hub("node/register", fields{"name": os.Args[1]})
	for err == nil {
		var next fields
		if next, err = hub("task/next", fields{"wait": 25, "resume": true}); err != nil || next["task"] == nil {
			continue
		}
		task := next["task"].(map[string]any)
		held := fields{"task_id": task["task_id"], "epoch": next["lease"].(map[string]any)["epoch"]}
		ended := make(chan bool)
		go keep(held, ended)
		path, report := "task/complete", fields{"task_id": held["task_id"], "epoch": held["epoch"]}
		if output, failure := work(task); failure == nil {
			report["result"] = fields{"problem": task["title"], "improvement": "done", "lesson": "none", "output": output}
		} else {
			path, report["error"] = "task/fail", failure.Error()
		}
		if _, refusal := hub(path, report); refusal != nil {
			fmt.Fprintln(os.Stderr, refusal) // the task was taken away or cancelled: the worker goes on
		}
		close(ended)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
