#!/bin/bash
# Looks over the chart: helm's own lint, and kubeconform by Kubernetes' schemas, which are in
# its module.
set -euo pipefail
cd "$(dirname "$0")/../.."
kubernetes=k8s.io/kubernetes@v1.37.2
schemas=$PWD/out/schemas
helm() { go run helm.sh/helm/v4/cmd/helm@v4.3.2 "$@"; }

dir=$(go mod download -json "$kubernetes" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
rm -rf "$schemas"
go run ./test/containers/schemas "$dir/api/openapi-spec/v3" "$schemas"
for values in nodes=1 nodes=3,secret=porch,tls=files,tlsSecret=tls nodes=3,secret=porch; do
	helm lint --strict build/containers/chart --set "$values"
	helm template porch build/containers/chart --set "$values" |
		go run github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 -strict -summary -schema-location "$schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json" -
done
