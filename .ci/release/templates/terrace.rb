class Terrace < Formula
  desc "{{.Summary}}"
  homepage "{{.Repository}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{- range $system := .Systems "darwin" "linux"}}

  {{name "homebrew" $system}} do
{{- range $.Archives $system}}
{{- $url := .URL}}{{$sum := .SHA256}}
{{- with name "homebrew" .Processor}}
    {{.}} do
      url "{{$url}}"
      sha256 "{{$sum}}"
    end
{{- end}}
{{- end}}
  end
{{- end}}

  def install
    bin.install "terrace", "terrace-worker"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/terrace.bash" => "terrace"
    fish_completion.install "completions/terrace.fish"
    zsh_completion.install "completions/_terrace"
  end

  test do
    assert_match "v#{version} ", shell_output("#{bin}/terrace version")
  end
end
