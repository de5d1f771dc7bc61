module github.com/tickonce/tickonce/examples/wasmtime

go 1.26.0

require (
	github.com/bytecodealliance/wasmtime-go/v37 v37.0.0
	github.com/stretchr/testify v1.12.1
	github.com/tickonce/tickonce v0.0.0
)

require (
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/tidwall/btree v1.8.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/tickonce/tickonce => ../..
