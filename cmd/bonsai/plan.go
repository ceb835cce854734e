package main

import "context"

var planKeys = []string{"all", "detailed-exitcode", "target"}

func runPlan(_ context.Context, _ *program, _ *words) (int, error) { return 0, nil }

var inspectKeys = []string{"all", "file"}

func runInspect(_ context.Context, _ *program, _ *words) (int, error) { return 0, nil }

var evalKeys = []string{"against", "bos", "kind", "model", "text", "tokens", "window"}

func runEval(_ context.Context, _ *program, _ *words) (int, error) { return 0, nil }
