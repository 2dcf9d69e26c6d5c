# The same shell as ./just makes, for people who use Nix: `nix develop`, or `nix develop .#ci` for what `just check` needs.
# It brings compilers and system programs. Go programs stay pinned below kube, Python packages in requirements.lock.
{
  description = "Deploys an LLM inference service and proves that its rollouts lose no streamed answer";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { nixpkgs, ... }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "aarch64-darwin"
      ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      formatter = forEach (pkgs: pkgs.nixfmt);

      devShells = forEach (
        pkgs:
        let
          check = [
            pkgs.bashInteractive
            pkgs.cacert
            pkgs.git
            pkgs.go
            pkgs.just
            pkgs.nixfmt
            pkgs.python3
          ];
          # What the embedded cluster needs beside; it runs on Linux alone.
          cluster = pkgs.lib.optionals pkgs.stdenv.hostPlatform.isLinux [
            pkgs.gcc
            pkgs.iproute2
            pkgs.libseccomp
            pkgs.mmdebstrap
            pkgs.nftables
            pkgs.iptables
            pkgs.conntrack-tools
            pkgs.pkg-config
            pkgs.util-linux
          ];
          # ./just makes .venv from requirements.lock and knows that the system's part is Nix's.
          shellHook = ''
            root=$(git rev-parse --show-toplevel)
            "$root/just" --version >&2
            export PATH="$root/.tools/bin:$root/.venv/bin:$PATH"
          '';
        in
        {
          ci = pkgs.mkShell {
            buildInputs = check;
            inherit shellHook;
          };
          default = pkgs.mkShell {
            buildInputs = check ++ cluster ++ [ pkgs.uv ];
            inherit shellHook;
          };
        }
      );
    };
}
