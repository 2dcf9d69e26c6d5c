// The YAML formatter, on its own: a new version of it rebuilds nothing else.
module inferctl/yamlfmt

go 1.26.0

tool github.com/google/yamlfmt/cmd/yamlfmt

require (
	github.com/bmatcuk/doublestar/v4 v4.7.1 // indirect
	github.com/google/go-cmp v0.6.0 // indirect
	github.com/google/yamlfmt v0.21.0 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	github.com/sabhiram/go-gitignore v0.0.0-20210923224102-525f6e181f06 // indirect
	go.yaml.in/yaml/v3 v3.0.3 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
