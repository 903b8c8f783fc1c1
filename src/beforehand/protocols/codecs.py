"""The codec of each protocol family. To add a frame, add its struct to the family's union."""

from __future__ import annotations

from typing import Any

from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.epidemic.frames import Frame
from beforehand.protocols.mobile.was import frames as mobile
from beforehand.protocols.observer.observer import Stamped
from beforehand.protocols.vcube.frames import VCubeFrame

OPPORTUNISTIC: Codec[Frame] = Codec("opportunistic", Frame)
VCUBE: Codec[VCubeFrame] = Codec("vcube", VCubeFrame)
OBSERVER: Codec[Stamped] = Codec("observer", Stamped)
MOBILE: Codec[mobile.Frame] = Codec("mobile", mobile.Frame)

CODECS: tuple[Codec[Any], ...] = (OPPORTUNISTIC, VCUBE, OBSERVER, MOBILE)
