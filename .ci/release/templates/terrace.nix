# Terrace {{.Version}} for Nix: pkgs.callPackage ./terrace.nix { }
{
  lib,
  stdenvNoCC,
  fetchurl,
  installShellFiles,
}:

let
  archives = {
{{- range .Unix}}
    {{name "nix" .Processor}}-{{name "nix" .System}} = {
      url = "{{.URL}}";
      hash = "{{.SRI}}";
    };
{{- end}}
  };
  system = stdenvNoCC.hostPlatform.system;
in
stdenvNoCC.mkDerivation {
  pname = "terrace";
  version = "{{.Version}}";

  src = fetchurl (archives.${system} or (throw "terrace {{.Version}} has no archive for ${system}"));
  sourceRoot = ".";

  nativeBuildInputs = [ installShellFiles ];

  dontConfigure = true;
  dontBuild = true;
  dontFixup = true;

  installPhase = ''
    runHook preInstall
    install -D -m 755 -t $out/bin terrace terrace-worker
    installManPage man/man1/*.1
    installShellCompletion --cmd terrace \
      --bash completions/terrace.bash \
      --fish completions/terrace.fish \
      --zsh completions/_terrace
    runHook postInstall
  '';

  meta = {
    description = "{{.Summary}}";
    homepage = "{{.Repository}}";
    license = lib.licenses.asl20;
    mainProgram = "terrace";
    platforms = builtins.attrNames archives;
    sourceProvenance = [ lib.sourceTypes.binaryNativeCode ];
  };
}
