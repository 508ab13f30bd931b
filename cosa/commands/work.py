"""What a command line works on: a layer, or layers, and the architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosa.common.errors import InputError
from cosa.common.options import Options, flags, option

if TYPE_CHECKING:
    from cosa.model.arch import Architecture
    from cosa.model.layer import Layer
    from cosa.model.networks import NetworkLayer

_LAYER = "either --network NAME --layer NAME, or --layer-file FILE"


class Work(Options):
    """Layers and architecture."""

    network: str | None = option(None, "Layer table.", metavar="NAME", complete="cosa.model.networks:network_names")
    layer: str | None = option(None, "Layer of that table, or several.", metavar="NAME[,NAME...]")
    layer_file: str | None = option(None, "YAML or JSON file of a layer.", metavar="FILE")
    arch: str | None = option(
        None,
        "Packaged architecture, or a file (simba_4x4).",
        metavar="NAME|FILE",
        complete="cosa.model.arch:architecture_names",
    )
    mesh: str | None = option(None, "Mesh of PEs instead of the architecture's.", metavar="COLUMNSxROWS")

    @property
    def whole_network(self) -> bool:
        """Whether all layers of a network, or several, are meant."""
        one = self.layer is not None and "," not in self.layer
        return self.network is not None and not one and self.layer_file is None

    def inputs(self) -> dict[str, str | None]:
        """Files that are read, by flag: outputs must not overwrite them."""
        return {"--layer-file": self.layer_file, "--arch": self.arch}

    def architecture(self, default: str = "simba_4x4") -> Architecture:
        """The architecture, with the mesh asked for.

        Raises
        ------
        InputError: there is no such architecture or mesh, or the file is wrong.
        """
        from cosa.model.arch import load_architecture

        with flags(Work, architecture="--arch"):
            found = load_architecture(default if self.arch is None else self.arch)
            return found if self.mesh is None else found.with_mesh(self.mesh)

    def one_layer(self) -> Layer:
        """The layer of --network and --layer, or of --layer-file.

        Raises
        ------
        InputError: none is named, or options contradict each other.
        """
        if self.layer_file is None and self.network is not None and self.layer is None:
            raise InputError("names no layer", source="--network", value=self.network, allowed=_LAYER)
        found = self.layers()
        if len(found) > 1:
            raise InputError("several layers", source="--layer", value=self.layer, allowed="one")
        return found[0].layer

    def layers(self) -> list[NetworkLayer]:
        """The layers of --network (those that --layer names, separated by commas), or the one of --layer-file.

        Raises
        ------
        InputError: none is named, one is named twice, or options contradict each other.
        """
        from cosa.model.layer import Layer
        from cosa.model.networks import NetworkLayer, load_network

        if self.layer_file is not None:
            other = "--network" if self.network is not None else "--layer" if self.layer is not None else None
            if other:
                message = f"contradicts {other}"
                raise InputError(message, source="--layer-file", value=self.layer_file, allowed=_LAYER)
            return [NetworkLayer(Layer.from_file(self.layer_file), 1)]
        if self.network is None:
            if self.layer is None:
                raise InputError("no layer given", allowed=_LAYER)
            raise InputError("needs --network", source="--layer", value=self.layer, allowed=_LAYER)
        with flags(Work):
            table = load_network(self.network)
            if self.layer is None:
                return list(table.layers)
            found = [table.find(name.strip()) for name in self.layer.split(",")]
        for number, entry in enumerate(found):
            if entry in found[:number]:
                raise InputError("named twice", source="--layer", value=entry.layer.name, allowed="each once")
        return found
